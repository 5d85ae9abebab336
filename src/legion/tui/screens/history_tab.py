"""The tab with a ticket's history: what happened, and the moments that it can return to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from textual.containers import Vertical
from textual.widget import Widget

from legion.client.text import proofs
from legion.client.text.rows import BLANK, Row, clean, flow, head, note, paragraph
from legion.client.text.terminal import Cell, count
from legion.tui.feed import Feed
from legion.tui.keys import KeyContext
from legion.tui.screens.host import UiHost
from legion.tui.screens.place import Place
from legion.tui.screens.prompts import Reader
from legion.tui.store import BoardStore
from legion.tui.views import diff
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.lines import RowLines
from legion.tui.widgets.row_list import RowList
from legion.wire.errors import LegionError
from legion.wire.history import Events
from legion.wire.tickets import RewindTo

_SHOWN = 500


class HistoryList(RowList):
    BINDINGS = bindings_of(KeyContext.HISTORY)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "rewind":
            return bool(cast("HistoryTab", self.parent).moment)
        return super().check_action(action, parameters)

    def action_rewind(self) -> None:
        cast("HistoryTab", self.parent).rewind()


class HistoryTab(Vertical):
    DEFAULT_CSS = """
    HistoryTab > RowLines { background: $surface; }
    HistoryTab > HistoryList { height: 1fr; }
    """

    def __init__(self, ticket: int, *, id: str) -> None:
        super().__init__(id=id)
        self._ticket = ticket
        self._feed: Feed[Events] | None = None

    def compose(self) -> Iterable[Widget]:
        yield RowLines(id="history-title")
        yield HistoryList(id="moments", follow=True)

    @property
    def _app(self) -> UiHost:
        return cast(UiHost, self.app)

    @property
    def events(self) -> Events | None:
        return self._feed.value if self._feed is not None else None

    @property
    def moment(self) -> str:
        """The selected moment, where the ticket can return to it."""
        if not self.is_mounted or self._has_landed:
            return ""
        return proofs.moment_of(self.events, self.query_one(HistoryList).selected)

    @property
    def _has_landed(self) -> bool:
        """What landed is reverted instead."""
        ticket = cast(Place, self.screen).ticket
        return ticket is not None and ticket.state == "done"

    def watches(self, store: BoardStore) -> Iterable[Callable[[], None]]:
        id, cwd = self._ticket, store.cwd
        if self._feed is None:
            self._feed = store.feed(
                lambda legion: legion.history(cwd, ticket=id, last=_SHOWN), lambda event: event.ticket == id
            )
        yield self._feed.watch(self.renew)

    def on_unmount(self) -> None:
        if self._feed is not None:
            self._app.store.drop([self._feed])

    def renew(self) -> None:
        if not self.is_mounted:
            return
        self.query_one(HistoryList).put(proofs.history_rows(self.events, self.screen.size.width - 1))
        text = f" {self._moments}; Enter shows a line in full, and what changed since"
        self.query_one(RowLines).show_all(flow([Cell(text)], self.screen.size.width))

    @property
    def _moments(self) -> str:
        if self._has_landed:
            return "it landed, so it returns to no moment"
        number = sum(bool(one.rewind) for one in self.events.lines) if self.events is not None else 0
        return f"{count(number, 'moment')} to return to, marked ↶" if number else "no moment to return to yet"

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        one = proofs.line_of(self.events, event.key)
        if one is None:
            return
        facts = [f"{name}: {value}" for name, value in one.data.items()]
        text = "\n".join([one.words, *([one.why] if one.why else []), "", *facts])
        if one.rewind:
            self.run_worker(self._compare(one.rewind, text), exclusive=True)
        else:
            self.app.push_screen(Reader(clean(one.kind), lambda width: paragraph(text, width)))

    async def _compare(self, moment: str, text: str) -> None:
        """Show the moment, and what changed between it and now."""
        id = self._ticket
        try:
            since = (await self._app.store.requests.ask(lambda legion: legion.diff(id, moment))).text
        except LegionError as error:
            fault = error.message
            self._read(moment, text, lambda width: paragraph(fault, width))
        else:
            files = diff.parse(since)
            same = note("Its tree is the same now.")
            self._read(moment, text, lambda width: diff.rows(files, width, (), {}) or [same])

    def _read(self, moment: str, text: str, since: Callable[[int], list[Row]]) -> None:
        def rows(width: int) -> list[Row]:
            back = [] if self._has_landed else [BLANK, note("Esc, then R returns the ticket to this moment.")]
            return [*paragraph(text, width), *back, BLANK, head("What changed since then"), *since(width)]

        if self.is_mounted:
            self.app.push_screen(Reader(f"#{self._ticket} at {moment}", rows))

    def rewind(self) -> None:
        moment, id = self.moment, self._ticket
        if moment:
            self._app.ask(
                f"Return #{id} to {moment}? Its tree and conversation go back; what it has now is saved.",
                lambda legion: legion.rewind(id, RewindTo(to=moment)).message,
            )
