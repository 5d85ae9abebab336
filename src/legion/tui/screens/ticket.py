"""A ticket's screen: live output, text, change, terminal, receipts, reviews, history."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from textual.containers import Vertical
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from legion.client.text import proofs, ticket_page
from legion.client.text.board import why
from legion.client.text.rows import Row, clean, note, paragraph, row
from legion.client.text.terminal import Cell, Colour, count
from legion.tui.feed import Feed, LogFeed
from legion.tui.keys import KeyContext
from legion.tui.screens.history_tab import HistoryTab
from legion.tui.screens.host import UiHost
from legion.tui.screens.prompts import LinePrompt, YesNo
from legion.tui.screens.ticket_place import TicketPlace
from legion.tui.store import BoardStore
from legion.tui.views import diff, ticket
from legion.tui.views.diff import CommentPlace, ShownFile
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.lines import RowLine, RowLines
from legion.tui.widgets.row_list import RowList
from legion.wire.ticket_pages import Diff, TicketPage
from legion.wire.tickets import Action, TicketLine


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
            self._files, self._parsed = diff.parse(change.text), change.text
        width = self.screen.size.width - 1
        rows = diff.rows(self._files, width, self._folded, self.comments)
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
        feedback = diff.feedback(comments, self._files)

        def sent() -> None:
            self._app.drafts.remove(f"comment.{id}.")
            self.renew()

        def go(yes: bool | None) -> None:
            if yes:
                self._app.send(lambda legion: legion.bounce(id, Action(feedback=feedback)).message, then=sent)

        question = f"Send #{id} back to its agent with {count(len(comments), 'comment')}?"
        self.app.push_screen(YesNo(question), go)


_HEAD_LINES = 3
TABS = ("live", "about", "diff", "terminal", "receipts", "review", "history")


class TicketScreen(TicketPlace, inherit_bindings=False):
    AUTO_FOCUS = ""
    NAME = "ticket"
    SHOWS_NEXT = False
    MARKS = False
    CONTEXTS = (KeyContext.TICKET, KeyContext.TICKETS, KeyContext.DIFF, KeyContext.HISTORY, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.TICKET, KeyContext.TICKETS)
    DEFAULT_CSS = """
    TicketScreen #tabs { background: $surface; }
    TicketScreen ContentSwitcher { height: 1fr; }
    TicketScreen ContentSwitcher > * { height: 1fr; }
    """
    tab: reactive[str] = reactive("live", init=False)

    def __init__(self, id: int, tab: str = "live") -> None:
        super().__init__()
        self.id_of_ticket = id
        self._first_tab = tab
        self._page: Feed[TicketPage] | None = None
        self._log: LogFeed | None = None
        self._opened_receipt: str | None = None

    def compose_body(self) -> Iterable[Widget]:
        with Vertical(id="body"):
            yield RowLines(id="head")
            yield RowLines(id="step")
            yield RowLine(id="tabs")
            with ContentSwitcher(initial=self._first_tab):
                yield RowList(id="live", follow=True)
                yield RowList(id="about")
                yield ChangeTab(self.id_of_ticket, id="diff")
                yield RowList(id="terminal")
                yield RowList(id="receipts")
                yield RowList(id="review")
                yield HistoryTab(self.id_of_ticket, id="history")

    @property
    def page(self) -> TicketPage | None:
        return self._page.value if self._page is not None else None

    @property
    def ticket(self) -> TicketLine | None:
        return self.page.ticket if self.page is not None else None

    def on_mount(self) -> None:
        id, store = self.id_of_ticket, self.store
        self._page = store.feed(lambda legion: legion.ticket(id), lambda event: event.ticket == id)
        self._log = LogFeed(store.requests, id, self._renew_live)
        self.set_reactive(TicketScreen.tab, self._first_tab)
        self.call_after_refresh(self._focus_tab)
        # Seconds pass without an event.
        self.set_interval(1.0, self._count_on)

    def _count_on(self) -> None:
        if self.is_watching and self.ticket is not None and self.ticket.doing_since is not None:
            self._renew_head()

    def on_unmount(self) -> None:
        super().on_unmount()
        if self._page is not None:
            self.store.drop([self._page])
        if self._log is not None:
            self._log.close()

    def watches(self) -> Iterable[Callable[[], None]]:
        assert self._page is not None
        yield self._page.watch(self.renew)
        yield self.store.output.watch(self._printed)
        yield from self.query_one(ChangeTab).watches(self.store)
        yield from self.query_one(HistoryTab).watches(self.store)
        self._read_on()

    def _read_on(self) -> None:
        if self._log is not None:
            self._log.read_on()

    def _printed(self) -> None:
        """Some agent has printed; read on where it is this one."""
        mine = {line.run for line in self.store.output.running if line.ticket == self.id_of_ticket}
        if any(piece.run in mine for piece in self.store.output.pieces):
            self._read_on()

    def renew(self) -> None:
        if not self.is_mounted:
            return
        self._renew_head()
        self._renew_live()
        page, width = self.page, self.size.width - 1
        if page is not None:
            self._read_on()
            self.query_one("#about", RowList).put(ticket_page.about_rows(page, width))
            self.query_one("#receipts", RowList).put(proofs.receipt_rows(page, width, opened=self._opened_receipt))
            self.query_one("#review", RowList).put(
                proofs.review_rows(page, width, ask=self.legion_app.keys.shown().get("review", "the menu"))
            )
        self.query_one(ChangeTab).renew()
        self.query_one(HistoryTab).renew()
        self.refresh_bindings()

    def _renew_head(self) -> None:
        width, page = self.size.width, self.page
        trouble = self._page.trouble if self._page is not None else ""
        if page is not None:
            head = ticket_page.head_rows(page.ticket, width, why(page.ticket))
            self.query_one("#head", RowLines).show_all(head[:_HEAD_LINES])
            self.query_one("#step", RowLines).show_all(ticket_page.next_rows(page, self.legion_app.keys.shown(), width))
        else:
            title = clean(trouble) or f"#{self.id_of_ticket}"
            self.query_one("#head", RowLines).show_all(paragraph(title, width, colour=Colour.BOLD))
        cells = [Cell(f" {name} ", Colour.BOLD if name == self.tab else Colour.DIM) for name in TABS]
        self.query_one("#tabs", RowLine).show(Row(tuple(cells)))

    def _renew_live(self) -> None:
        log = self._log
        if not self.is_mounted or log is None:
            return
        width = self.size.width - 1
        rows = ticket.live_rows(log.lines, width)
        if log.dropped:
            rows.insert(0, note(f"{log.dropped} lines before; `legion log {self.id_of_ticket}` prints all"))
        self.query_one("#live", RowList).put(rows or paragraph(ticket.no_output(self.page), width, colour=Colour.DIM))
        keys = self.legion_app.keys.shown()
        self.query_one("#terminal", RowList).put(ticket.terminal_rows(self.page, log.lines, keys, width))

    # Tabs

    def watch_tab(self) -> None:
        self.query_one(ContentSwitcher).current = self.tab
        self._renew_head()
        self._focus_tab()

    def _focus_tab(self) -> None:
        tab = self.query_one(f"#{self.tab}")
        lists = [tab] if isinstance(tab, RowList) else [one for one in tab.query(RowList) if one.can_focus]
        lists[0].focus()
        self.refresh_bindings()

    def show_tab(self, name: str) -> None:
        self.tab = name

    def action_next_tab(self) -> None:
        self.tab = TABS[(TABS.index(self.tab) + 1) % len(TABS)]

    def action_previous_tab(self) -> None:
        self.tab = TABS[(TABS.index(self.tab) - 1) % len(TABS)]

    def action_diff(self) -> None:
        self.tab = "diff"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return False if action == "open" else super().check_action(action, parameters)

    def on_row_line_clicked(self, event: RowLine.Clicked) -> None:
        name = event.cell.text.strip()
        if event.line.id == "tabs" and name in TABS:
            self.tab = name
        else:
            super().on_row_line_clicked(event)

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        if event.rows.id == "receipts":
            self._opened_receipt = "none" if self._opened_receipt == event.key else event.key
            self.renew()
        elif event.rows.id == "terminal" and event.key == ticket.ATTACH:
            self.action_attach()
        elif event.rows.id == "terminal" and event.key == ticket.SHELL:
            self.action_shell()

    def copyable(self, ticket: TicketLine) -> list[tuple[str, str]]:
        page = self.page
        more = (
            [("worktree", page.worktree or ""), ("change", page.change or ""), ("landed", page.landed or "")]
            if page
            else []
        )
        return [*super().copyable(ticket), *more]
