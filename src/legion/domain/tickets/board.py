"""The board: tickets and the edges between them, which may start, and the longest chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from legion.domain.errors import BadInput
from legion.domain.tickets.ticket import State


def refuse_cycles(edges: Mapping[int, Sequence[int]], names: Mapping[int, str] | None = None) -> None:
    """`edges[ticket]` are the tickets it comes after. Raises BadInput that shows the cycle, by name where known."""
    done: set[int] = set()
    for start in edges:
        if start in done:
            continue
        path: list[int] = []
        on_path: set[int] = set()
        stack: list[tuple[int, int]] = [(start, 0)]
        while stack:
            ticket, position = stack.pop()
            if position == 0:
                if ticket in done:
                    continue
                if ticket in on_path:
                    circle = [*path[path.index(ticket) :], ticket]
                    shown = " after ".join((names or {}).get(member) or str(member) for member in circle)
                    raise BadInput(f"These tickets wait for each other in a circle ({shown}): remove one of the edges.")
                path.append(ticket)
                on_path.add(ticket)
            later = edges.get(ticket, ())
            if position < len(later):
                stack.append((ticket, position + 1))
                stack.append((later[position], 0))
            else:
                path.pop()
                on_path.discard(ticket)
                done.add(ticket)


def refuse_unknown(after: Iterable[int], known: Iterable[int]) -> None:
    unknown = sorted(set(after) - set(known))
    if unknown:
        listed = ", ".join(str(ticket) for ticket in unknown)
        raise BadInput(f"There is no ticket {listed} to come after: see `legion status`.")


def ready(after: Sequence[int], states: Mapping[int, State]) -> bool:
    """Everything it comes after has landed. A ticket that was dropped from the board blocks nothing."""
    return all(states.get(ticket, State.DONE) is State.DONE for ticket in after)


def held_up_by(after: Sequence[int], states: Mapping[int, State]) -> tuple[int, ...]:
    """The tickets it comes after that will not land by themselves: failed or stopped."""
    return tuple(ticket for ticket in after if states.get(ticket) in (State.FAILED, State.STOPPED))


def hopeless(edges: Mapping[int, Sequence[int]], states: Mapping[int, State]) -> frozenset[int]:
    """Tickets that cannot end by themselves because something before them failed or was stopped, at any distance."""
    order = waves(edges)
    lost: set[int] = set()
    for wave in order:
        for ticket in wave:
            if states.get(ticket) in (State.DONE, State.FAILED, State.STOPPED):
                continue
            before = edges.get(ticket, ())
            if any(states.get(other) in (State.FAILED, State.STOPPED) or other in lost for other in before):
                lost.add(ticket)
    return frozenset(lost)


def waves(edges: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Tickets by depth: each wave could run at once when the wave before it has landed."""
    depth: dict[int, int] = {}
    for ticket in topological(edges):
        depth[ticket] = 1 + max((depth[other] for other in edges[ticket] if other in depth), default=-1)
    result: list[list[int]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for ticket in sorted(depth):
        result[depth[ticket]].append(ticket)
    return result


def critical_path(edges: Mapping[int, Sequence[int]], cost: Mapping[int, float]) -> list[int]:
    """The chain that takes longest, first ticket first. Ties go to the lowest id."""
    total: dict[int, float] = {}
    via: dict[int, int | None] = {}
    for ticket in topological(edges):
        before = [other for other in edges[ticket] if other in total]
        slowest = max(before, key=lambda other: (total[other], -other), default=None)
        total[ticket] = cost.get(ticket, 1.0) + (total[slowest] if slowest is not None else 0.0)
        via[ticket] = slowest
    if not total:
        return []
    here: int | None = max(total, key=lambda ticket: (total[ticket], -ticket))
    chain: list[int] = []
    while here is not None:
        chain.append(here)
        here = via[here]
    return chain[::-1]


def topological(edges: Mapping[int, Sequence[int]]) -> list[int]:
    """Topological order: every ticket after those it comes after. The edges have no cycle."""
    order: list[int] = []
    seen: set[int] = set()
    for start in sorted(edges):
        stack = [(start, False)]
        while stack:
            ticket, leaving = stack.pop()
            if leaving:
                order.append(ticket)
            elif ticket not in seen:
                seen.add(ticket)
                stack.append((ticket, True))
                stack.extend((other, False) for other in sorted(edges[ticket], reverse=True) if other in edges)
    return order
