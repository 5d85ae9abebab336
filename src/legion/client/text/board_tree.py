"""The board as a tree of lines: which ticket is drawn below which, and the branches in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from legion.wire.board import Graph

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
