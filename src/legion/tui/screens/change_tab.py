"""The tab with a ticket's change: files, folds, comments, and sending it back with all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from textual.containers import Vertical
from textual.widget import Widget

from legion.client.text.rows import clean, note, row
from legion.client.text.terminal import Cell, Colour, count
from legion.tui.feed import Feed
from legion.tui.keys import KeyContext
from legion.tui.screens.host import UiHost
from legion.tui.screens.prompts import LinePrompt, YesNo
from legion.tui.store import BoardStore
from legion.tui.views import diff as view
from legion.tui.views.diff import CommentPlace, ShownFile
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.lines import RowLine
from legion.tui.widgets.row_list import RowList
from legion.wire.ticket_pages import Diff
from legion.wire.tickets import Action


class ChangeList(RowList):
    """The lines of the change."""

    BINDINGS = bindings_of(KeyContext.DIFF)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        tab = cast("ChangeTab", self.parent)
        if action == "comment":
            return CommentPlace.of(self.selected) is not None
        if action == "send_back":
            return bool(tab.comments)
        return super().check_action(action, parameters)

    def action_comment(self) -> None:
        cast("ChangeTab", self.parent).comment()

    def action_send_back(self) -> None:
        cast("ChangeTab", self.parent).send_back()

    def action_fold(self) -> None:
        cast("ChangeTab", self.parent).fold()

    def action_next_file(self) -> None:
        self._file(1)

    def action_previous_file(self) -> None:
        self._file(-1)

    def _file(self, by: int) -> None:
        heads = [number for number, one in enumerate(self.rows) if one.key.startswith("file ")]
        at = next((number for number, one in enumerate(self.rows) if one.key == self.selected), 0)
        further = [number for number in heads if (number > at if by > 0 else number < at)]
        if further:
            self.select(self.rows[further[0] if by > 0 else further[-1]].key)


class ChangeTab(Vertical):
    DEFAULT_CSS = """
    ChangeTab > RowLine { background: $surface; }
    ChangeTab > ChangeList { height: 1fr; }
    """

    def __init__(self, ticket: int, *, id: str) -> None:
        super().__init__(id=id)
        self._ticket = ticket
        self._feed: Feed[Diff] | None = None
        self._files: list[ShownFile] = []
        self._parsed: str | None = None
        self._folded: set[str] = set()

    def compose(self) -> Iterable[Widget]:
        yield RowLine(id="change-title")
        yield ChangeList(id="change")

    @property
    def _app(self) -> UiHost:
        return cast(UiHost, self.app)

    @property
    def comments(self) -> dict[str, str]:
        return dict(self._app.drafts.of(f"comment.{self._ticket}."))

    def watches(self, store: BoardStore) -> Iterable[Callable[[], None]]:
        id = self._ticket
        if self._feed is None:
            self._feed = store.feed(lambda legion: legion.diff(id), lambda event: event.ticket == id)
        yield self._feed.watch(self.renew)

    def on_unmount(self) -> None:
        if self._feed is not None:
            self._app.store.drop([self._feed])

    def renew(self) -> None:
        if not self.is_mounted or self._feed is None:
            return
        change = self._feed.value
        if change is None or self._feed.trouble:
            self._title(clean(self._feed.trouble) or "Reading the change.")
            self.query_one(ChangeList).put([note(self._feed.trouble and "Come back when its agent has worked.")])
            return
        if change.text != self._parsed:
            self._files, self._parsed = view.parse(change.text), change.text
        width = self.screen.size.width - 1
        rows = view.rows(self._files, width, self._folded, self.comments)
        self.query_one(ChangeList).put(
            rows or [note("No changes so far." if change.live else "The ticket has no change.")]
        )
        added, removed = sum(one.added for one in self._files), sum(one.removed for one in self._files)
        live = ", the agent is still at work" if change.live else ""
        waiting = (
            f"  {count(len(self.comments), 'comment')}: `b` sends the change back with them" if self.comments else ""
        )
        self._title(f"{count(len(self._files), 'file')}  +{added} -{removed}{live}", waiting)

    def _title(self, text: str, waiting: str = "") -> None:
        self.query_one("#change-title", RowLine).show(row(f" {text}", Cell(waiting, Colour.YELLOW)))

    def fold(self) -> None:
        key = self.query_one(ChangeList).selected
        place = CommentPlace.of(key)
        path = place.path if place is not None else key.removeprefix("file ")
        self._folded ^= {path}
        self.renew()
        self.query_one(ChangeList).select(f"file {path}")

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        if event.key.startswith("file "):
            self.fold()
        else:
            self.comment()

    def comment(self) -> None:
        place = CommentPlace.of(self.query_one(ChangeList).selected)
        if place is None:
            return
        # The draft is the comment itself: it is kept until the change is sent back, or made empty.
        draft = f"comment.{self._ticket}.{place.key}"
        title = f"Comment on {place.path}:{place.line}, empty removes it"
        self.app.push_screen(LinePrompt(title, draft=draft, empty=True), lambda _: self.renew())

    def send_back(self) -> None:
        comments, id = self.comments, self._ticket
        if not comments:
            return
        feedback = view.feedback(comments, self._files)

        def sent() -> None:
            self._app.drafts.remove(f"comment.{id}.")
            self.renew()

        def go(yes: bool | None) -> None:
            if yes:
                self._app.send(lambda legion: legion.bounce(id, Action(feedback=feedback)).message, then=sent)

        question = f"Send #{id} back to its agent with {count(len(comments), 'comment')}?"
        self.app.push_screen(YesNo(question), go)
