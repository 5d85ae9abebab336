"""The board: tickets as columns, as a tree or as a graph, with a filter. On a narrow terminal columns become a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widget import Widget

from legion.client.text import board
from legion.client.text.board import BoardColumn, BoardMode
from legion.client.text.rows import Row, note, row
from legion.client.text.terminal import Cell, Colour
from legion.tui.keys import KeyContext
from legion.tui.screens.prompts import LinePrompt
from legion.tui.screens.ticket_place import COUNTED_EVERY, TicketPlace
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.lines import RowLine
from legion.tui.widgets.row_list import RowList
from legion.wire.board import Graph
from legion.wire.tickets import TicketLine

_MOST_COLUMNS = 10
_PAUSE = 0.1
"""Seconds without a letter after which a filter is applied."""


class BoardColumns(Vertical):
    """The board itself: also a part of the squad's screen."""

    DEFAULT_CSS = """
    BoardColumns > #title { background: $surface; }
    BoardColumns > #columns { height: 1fr; }
    BoardColumns > #columns > Vertical { width: 1fr; display: none; margin-right: 1; }
    BoardColumns > #columns > Vertical.-shown { display: block; }
    BoardColumns > #columns > Vertical > RowLine { background: $surface; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.mode = BoardMode.COLUMNS
        self.filter = ""
        self.tickets: list[TicketLine] = []
        self.graph: Graph | None = None
        self.lists: list[RowList] = []
        """Those that are shown, from left to right."""
        self._title_line = RowLine(id="title")
        self._columns = [
            (Vertical(id=f"column-{number}"), RowLine(classes="title"), RowList(classes="tickets"))
            for number in range(_MOST_COLUMNS)
        ]

    def compose(self) -> Iterable[Widget]:
        yield self._title_line
        with Horizontal(id="columns"):
            for box, title, rows in self._columns:
                with box:
                    yield title
                    yield rows

    @property
    def focused_list(self) -> RowList | None:
        lists = self.lists
        return next((one for one in lists if one.has_focus), lists[0] if lists else None)

    @property
    def selected(self) -> str:
        focused = self.focused_list
        return focused.selected if focused is not None else ""

    def put(self, tickets: list[TicketLine], graph: Graph | None, omitted: int = 0) -> None:
        self.tickets, self.graph = tickets, graph
        shown = board.shown(tickets, self.filter)
        self._title(len(shown), omitted)
        width = self.size.width
        if not width:
            return
        if self.mode is BoardMode.TREE and graph is not None:
            self._lists([("", board.tree(graph, width - 1, self.filter))])
        elif self.mode is BoardMode.GRAPH and graph is not None:
            self._waves(graph, width)
        else:
            self._by_state(shown, width)

    def _by_state(self, shown: list[TicketLine], width: int) -> None:
        columns = board.columns(shown, width)
        chain = board.longest_chain(self.graph)
        if len(columns) == 1:
            self._lists([("", board.listed(shown, width - 1, chain))])
            return
        room = width // len(columns) - 2
        self._lists([(column.title, board.cards(column.tickets, room, chain)) for column in columns])

    def _waves(self, graph: Graph, width: int) -> None:
        waves = board.waves(graph, self.filter)
        fit = max(1, min(len(waves), width // board.LEAST_COLUMN, _MOST_COLUMNS))
        if len(waves) > fit:
            # The last column holds all waves for which there is no room.
            rest = tuple(ticket for wave in waves[fit - 1 :] for ticket in wave.tickets)
            waves = [*waves[: fit - 1], BoardColumn(f"Waves {fit} to {len(waves)}", rest)]
        room = width // max(1, len(waves)) - 2
        chain = board.longest_chain(graph)
        self._lists([(wave.title, board.wave_cards(wave.tickets, room, chain)) for wave in waves])

    def _lists(self, made: list[tuple[str, list[Row]]]) -> None:
        focused = self.focused_list
        selected = focused.selected if focused is not None and focused.has_focus else ""
        self.lists = [rows for _, _, rows in self._columns[: len(made)]]
        for number, (box, line, tickets) in enumerate(self._columns):
            box.set_class(number < len(made), "-shown")
            if number < len(made):
                title, rows = made[number]
                line.display = bool(title)
                line.show(row(Cell(f" {title}", Colour.BOLD)))
                tickets.put(rows or [note(" nothing here")] if title else rows)
        if selected and (focused not in self.lists or self.selected != selected):
            self._follow(selected)
        elif focused is not None and focused.has_focus and focused not in self.lists and self.lists:
            self.lists[-1].focus()

    def _follow(self, ticket: str) -> None:
        """The selection goes with the ticket to the column that it is in now. At once: the next key acts on it."""
        there = next((one for one in self.lists if any(row.key == ticket for row in one.rows)), None)
        if there is not None:
            there.select(ticket)
            self.screen.set_focus(there)

    def _title(self, number: int, omitted: int) -> None:
        cells = [Cell(f" {self.mode.value} ", Colour.BOLD)]
        if fault := board.fault_of(self.filter):
            cells.append(Cell(f" filter: {fault}", Colour.RED))
        elif self.filter:
            cells.append(Cell(f" filter: {self.filter}  ({number} of {len(self.tickets)})", Colour.YELLOW))
        elif omitted:
            cells.append(Cell(f" {omitted} older ended ones are not listed", Colour.DIM))
        chain = board.chain_line(self.graph)
        if chain is not None:
            cells += [Cell("  "), *chain.cells]
        self._title_line.show(Row(tuple(cells)))

    def move(self, by: int) -> None:
        """The focus to the next column with tickets."""
        lists = self.lists
        focused = self.focused_list
        if focused is None:
            return
        place = lists.index(focused) + by
        while 0 <= place < len(lists):
            if lists[place].selected:
                lists[place].focus()
                return
            place += by

    def focus_first(self) -> None:
        """The first column that has a ticket, unless one with tickets has the focus."""
        lists = self.lists
        if lists and not any(one.has_focus and one.has_keys for one in lists):
            next((one for one in lists if one.selected), lists[0]).focus()

    def select_first(self) -> None:
        """Where the person has just chosen what is listed, and the selected ticket is not among it."""
        focused = self.focused_list
        if focused is not None and not focused.selected:
            focused.action_first()


class BoardPlace(TicketPlace):
    NAME = "board"
    CONTEXTS = (KeyContext.BOARD, KeyContext.TICKETS, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.BOARD, KeyContext.TICKETS)

    def __init__(self) -> None:
        super().__init__()
        self.columns = BoardColumns(id="body")
        self._filter_soon: Timer | None = None

    def on_mount(self) -> None:
        self.set_interval(COUNTED_EVERY, self._count_on)

    def _count_on(self) -> None:
        if self.is_watching and any(one.doing_since is not None for one in self.columns.tickets):
            self.renew()

    def compose_body(self) -> Iterable[Widget]:
        yield self.columns

    def watches(self) -> Iterable[Callable[[], None]]:
        yield self.store.status.watch(self.renew)
        yield self.store.graph.watch(self.renew)

    def renew(self) -> None:
        status = self.store.status.value
        if status is not None and self.is_mounted:
            self.columns.put(status.tickets, self.store.graph.value, status.omitted)
            if self.is_current:
                self.columns.focus_first()

    @property
    def ticket(self) -> TicketLine | None:
        key = self.columns.selected
        return self.store.tickets.get(int(key)) if key else None

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.legion_app.open_ticket(int(event.key))

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        self.refresh_bindings()

    def action_mode(self) -> None:
        self.columns.mode = self.columns.mode.next
        self.renew()
        self.columns.focus_first()
        self.columns.select_first()

    def action_left(self) -> None:
        self.columns.move(-1)
        self.refresh_bindings()

    def action_right(self) -> None:
        self.columns.move(1)
        self.refresh_bindings()

    def action_filter(self) -> None:
        before = self.columns.filter

        def changed(text: str) -> None:
            self._wait_no_more()
            self.columns.filter = text.strip()
            self.renew()

        def typed(text: str) -> None:
            # On a large board one letter costs as much as a word.
            self._wait_no_more()
            self._filter_soon = self.set_timer(_PAUSE, lambda: changed(text))

        def ended(text: str | None) -> None:
            # Esc takes the filter away; Enter keeps it, an empty one too.
            changed(text or "")
            self.columns.focus_first()
            self.columns.select_first()

        prompt = LinePrompt("Filter: words, #12, state:failed, epic:x, label:x, agent:x", changed=typed, empty=True)
        self.app.push_screen(prompt, ended)
        if before:
            changed("")

    def _wait_no_more(self) -> None:
        if self._filter_soon is not None:
            self._filter_soon.stop()
