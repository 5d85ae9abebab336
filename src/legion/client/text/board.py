"""The board as rows: columns by state, a tree by dependency, a graph by waves; and the filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from legion.client.text.rows import BLANK, Row, clean, fit, row, table
from legion.client.text.terminal import Cell, Colour, cut, numbers, width, wrap
from legion.client.text.tickets import STYLES, Group, about, group_of, style_of
from legion.wire.board import Graph
from legion.wire.tickets import TicketLine

_INDENT = 3


@dataclass(frozen=True, kw_only=True)
class TreeNode:
    """One line of the drawing."""

    ticket: int
    before: str
    """The branches in front of it."""
    also: list[int]
    """Tickets that it comes after, apart from the one that it is drawn below."""


def befores_of(board: Graph) -> dict[int, list[int]]:
    """The tickets of the board that each comes after."""
    befores: dict[int, list[int]] = {ticket.id: [] for ticket in board.tickets}
    for later, earlier in board.edges:
        if later in befores and earlier in befores:
            befores[later].append(earlier)
    return befores


def tree_of(board: Graph, *, unicode: bool) -> Iterator[TreeNode]:
    """Every ticket below the one it waits for last. A chain goes straight down instead of further to the right."""
    befores = befores_of(board)
    parents = _parents(board, befores)
    children: dict[int | None, list[int]] = {}
    for ticket in sorted(board.tickets, key=lambda ticket: ticket.id):
        children.setdefault(parents[ticket.id], []).append(ticket.id)
    bar, fork, last, down = ("│  ", "├─ ", "└─ ", "↓ ") if unicode else ("|  ", "|- ", "`- ", "v ")
    # Ticket, the prefix of its own line, and the prefix of the lines of its children.
    waiting: list[tuple[int, str, str]] = [(id, "", "") for id in reversed(children.get(None, []))]
    while waiting:
        id, before, below = waiting.pop()
        yield TreeNode(ticket=id, before=before, also=[other for other in befores[id] if other != parents[id]])
        under = children.get(id, [])
        if len(under) == 1:
            waiting.append((under[0], below + down, below))
            continue
        for n, child in enumerate(reversed(under)):
            branch, rest = (last, " " * _INDENT) if n == 0 else (fork, bar)
            waiting.append((child, below + branch, below + rest))


def _parents(board: Graph, befores: dict[int, list[int]]) -> dict[int, int | None]:
    """The ticket below which each ticket is drawn: the latest it comes after, on the longest chain if possible."""
    wave = {id: n for n, ids in enumerate(board.waves) for id in ids}
    chain = set(board.critical_path)

    def weight(id: int) -> tuple[int, bool, int]:
        return wave.get(id, 0), id in chain, -id

    return {id: max(earlier, key=weight) if earlier else None for id, earlier in befores.items()}


LEAST_COLUMN = 19
"""Columns of the terminal below which a column of tickets cannot be read."""
_CHAIN = "★"
NO_KEYS: Mapping[str, str] = {}
_NO_NAMES: Mapping[int, str] = {}
_HELPS = {"failed": ("retry", "tries again"), "parked": ("retry", "resumes")}
"""By state: the action of the key that helps, and what it does."""


class BoardMode(Enum):
    COLUMNS = "columns"
    TREE = "tree"
    GRAPH = "graph"

    @property
    def next(self) -> BoardMode:
        modes = list(BoardMode)
        return modes[(modes.index(self) + 1) % len(modes)]


@dataclass(frozen=True)
class BoardColumn:
    title: str
    tickets: tuple[TicketLine, ...]


_FIELDS = ("state", "epic", "team", "label", "agent", "project")


def matches(ticket: TicketLine, text: str) -> bool:
    """Whether a ticket has every word of a filter: `login`, `#12`, `state:failed`, `epic:auth`, `team:`, `label:`."""
    return all(_has(ticket, word) for word in text.lower().split())


def fault_of(text: str) -> str:
    """What in a filter can match no ticket of any board; empty where all of it makes sense."""
    for word in text.lower().split():
        name, colon, value = word.partition(":")
        if colon and name.isalpha() and name not in _FIELDS and not value.startswith("/"):
            return f"there is no {name}: ; {', '.join(f'{one}:' for one in _FIELDS)}"
        if colon and name == "state" and value and not any(value in one for one in STYLES):
            return f"there is no state {value}: {', '.join(STYLES)}"
    return ""


def _has(ticket: TicketLine, word: str) -> bool:
    name, colon, value = word.partition(":")
    if colon and name in _FIELDS:
        values = {
            "state": [ticket.state],
            "epic": [ticket.epic],
            "team": [ticket.team],
            "label": ticket.labels,
            "agent": [ticket.agent],
            "project": [ticket.project],
        }[name]
        return any(value in one.lower() for one in values) if value else any(values)
    if word.startswith("#"):
        return word == f"#{ticket.id}"
    return word in f"{ticket.id} {ticket.title} {ticket.state} {ticket.epic} {about(ticket)}".lower()


def shown(tickets: Iterable[TicketLine], filter: str) -> list[TicketLine]:
    return [ticket for ticket in tickets if matches(ticket, filter)]


def columns(tickets: Sequence[TicketLine], available: int) -> list[BoardColumn]:
    """One for each group that has tickets, where there is room; else all in one."""
    made = [_column(group.value, [t for t in tickets if group_of(t) is group]) for group in Group]
    by_group = [column for column in made if column.tickets]
    if len(by_group) > 1 and available >= len(by_group) * LEAST_COLUMN:
        return by_group
    return [BoardColumn("", tuple(ticket for column in by_group for ticket in column.tickets))]


def _column(title: str, tickets: list[TicketLine]) -> BoardColumn:
    ordered = sorted(tickets, key=lambda one: (-one.priority, one.id))
    if title == Group.ENDED.value:
        ordered.sort(key=lambda one: -one.moved_at)
    return BoardColumn(f"{title} {len(tickets)}", tuple(ordered))


def cards(tickets: Iterable[TicketLine], available: int, chain: Iterable[int] = ()) -> list[Row]:
    """Each ticket as two to three lines."""
    longest = set(chain)
    return [made for ticket in tickets for made in card(ticket, available, ticket.id in longest)]


def card(ticket: TicketLine, available: int, on_chain: bool = False) -> list[Row]:
    key = str(ticket.id)
    style = style_of(ticket.state)
    mark = f"{_CHAIN} " if on_chain else ""
    number = f"#{ticket.id} "
    title = _title(ticket, available, on_chain)
    rows = [
        Row(
            fit(
                (
                    Cell(f"{style.symbol} ", style.colour),
                    Cell(number, Colour.BOLD),
                    Cell(mark, Colour.YELLOW),
                    Cell(title[0]),
                ),
                available,
            ),
            key,
        )
    ]
    if len(title) > 1:
        rest = " ".join(title[1:])
        rows.append(row(Cell(cut(f"  {rest}", available)), key=key))
    detail = why(ticket) or after(ticket)
    if detail:
        rows.append(row(Cell(cut(f"  {detail}", available), Colour.DIM), key=key))
    return rows


def _title(ticket: TicketLine, available: int, on_chain: bool) -> list[str]:
    before = width(f"#{ticket.id} ") + (2 if on_chain else 0)
    return wrap(clean(ticket.title), max(8, available - 2 - before)) or [""]


def _title_lines(ticket: TicketLine, available: int, on_chain: bool) -> int:
    """How many lines of a card its title takes."""
    return min(2, len(_title(ticket, available, on_chain)))


def after(ticket: TicketLine) -> str:
    return f"after {numbers(ticket.after)}" if ticket.after else ""


def why(ticket: TicketLine, keys: Mapping[str, str] = NO_KEYS) -> str:
    """What it does or waits for, and the key that helps. A question is answered with a key, so no command is named."""
    if ticket.question is None:
        text, does = about(ticket), _HELPS.get(ticket.state) if ticket.parked_until is None else None
        return f"{keys[does[0]]} {does[1]}: {text}" if does is not None and does[0] in keys else text
    asks = f"asks: {clean(ticket.reason)}" if ticket.reason else "asks you"
    return f"{asks} ({keys['inbox']} answers)" if "inbox" in keys else asks


def listed(
    tickets: Iterable[TicketLine], available: int, chain: Iterable[int] = (), *, keys: Mapping[str, str] = NO_KEYS
) -> list[Row]:
    """One line per ticket in aligned columns, below the heads of the groups. `keys` are named where one helps."""
    known = list(tickets)
    longest = set(chain)
    rows: list[Row] = []
    for group in Group:
        members = [one for one in known if group_of(one) is group]
        if group is Group.ENDED:
            members.sort(key=lambda one: -one.moved_at)
        if members:
            rows.append(row(Cell(f"{group.value} {len(members)}", Colour.BOLD)))
            lines = [(str(one.id), _columns(one, one.id in longest, keys)) for one in members]
            rows += table(lines, available, keep=2)
    return rows


def _columns(ticket: TicketLine, on_chain: bool, keys: Mapping[str, str]) -> list[Cell]:
    """State and number, title, reason. The sign says the state, and the reason what is new in it."""
    style = style_of(ticket.state)
    detail = ", ".join(part for part in ("checkpoint" if ticket.checkpoint else "", why(ticket, keys)) if part)
    return [
        Cell(style.symbol, style.colour),
        Cell(f"#{ticket.id}{' ' + _CHAIN if on_chain else ''}", Colour.BOLD),
        Cell(clean(ticket.title)),
        Cell(detail or clean(ticket.state), Colour.DIM if detail else style.colour),
    ]


def line(
    ticket: TicketLine, available: int, *, before: str = "", on_chain: bool = False, also: str = "", name: str = ""
) -> Row:
    """A ticket on one line: branches, state, number or name, title, detail."""
    style = style_of(ticket.state)
    detail = ", ".join(part for part in (also, "checkpoint" if ticket.checkpoint else "", about(ticket)) if part)
    start = (
        Cell(before, Colour.DIM),
        Cell(f"{style.symbol} ", style.colour),
        Cell(f"{name or f'#{ticket.id}'} ", Colour.BOLD),
        Cell(f"{_CHAIN} " if on_chain else "", Colour.YELLOW),
    )
    used = sum(width(cell.text) for cell in start)
    title = cut(clean(ticket.title), max(12, (available - used) * 3 // 5))
    state = f"  {clean(ticket.state)}"
    return Row(
        fit(
            (*start, Cell(title), Cell(state, style.colour), Cell(f"  {detail}" if detail else "", Colour.DIM)),
            available,
        ),
        str(ticket.id),
    )


def tree(board: Graph, available: int, filter: str = "", names: Mapping[int, str] = _NO_NAMES) -> list[Row]:
    """Every ticket below the one that it waits for last. `names` stand for the numbers of tickets that have none."""
    tickets = {ticket.id: ticket for ticket in board.tickets}
    chain = longest_chain(board)
    rows = []
    for node in tree_of(board, unicode=True):
        ticket = tickets[node.ticket]
        if matches(ticket, filter):
            # A tree that is deeper than half of the terminal is cut on the left.
            before = node.before if width(node.before) <= available // 2 else f"…{node.before[-(available // 2) :]}"
            others = ", ".join(names.get(id, str(id)) for id in sorted(node.also))
            also = f"also after {others}" if others else ""
            name = names.get(ticket.id, "")
            rows.append(line(ticket, available, before=before, on_chain=ticket.id in chain, also=also, name=name))
    return rows


def drawing(board: Graph, available: int, names: Mapping[int, str] = _NO_NAMES) -> list[Row]:
    """The tree, and the longest chain below it."""
    if not board.tickets:
        return [row("The board is empty: legion dispatch -t TITLE TEXT")]
    longest = chain_line(board, names)
    return [*tree(board, available, names=names), *([BLANK, Row(fit(longest.cells, available))] if longest else [])]


def waves(board: Graph, filter: str) -> list[BoardColumn]:
    """The graph from left to right: a column per wave; a ticket stands to the right of all that it waits for."""
    tickets = {ticket.id: ticket for ticket in board.tickets}
    made = []
    for number, ids in enumerate(board.waves, 1):
        members = tuple(tickets[id] for id in ids if id in tickets and matches(tickets[id], filter))
        if members:
            made.append(BoardColumn(f"Wave {number}", members))
    return made


def wave_cards(tickets: Iterable[TicketLine], available: int, chain: Iterable[int]) -> list[Row]:
    """As cards, with what each comes after in front of what it does."""
    longest = set(chain)
    rows: list[Row] = []
    for ticket in tickets:
        made = card(ticket, available, ticket.id in longest)
        if ticket.after:
            edge = row(Cell(cut(f"  ← {numbers(ticket.after)}", available), Colour.BLUE), key=str(ticket.id))
            made.insert(_title_lines(ticket, available, ticket.id in longest), edge)
        rows += made
    return rows


def longest_chain(board: Graph | None) -> tuple[int, ...]:
    return tuple(board.critical_path) if board is not None and len(board.critical_path) > 1 else ()


def chain_line(board: Graph | None, names: Mapping[int, str] = _NO_NAMES) -> Row | None:
    chain = longest_chain(board)
    if not chain:
        return None
    return row(
        Cell(f"{_CHAIN} ", Colour.YELLOW), f"the longest chain: {' → '.join(names.get(id, str(id)) for id in chain)}"
    )
