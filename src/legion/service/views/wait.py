"""Waits until tickets have ended or need a person: the request behind `legion wait`."""

from __future__ import annotations

import time

from legion.domain.projects import Project
from legion.domain.rules import Rule
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets import board
from legion.domain.tickets.ticket import ENDED, ParkReason, State, Ticket
from legion.jobs.board import Board
from legion.jobs.trees import Trees
from legion.service.projects import registry
from legion.service.shared.commit_signal import CommitSignal
from legion.service.views.ticket_line import TicketLines
from legion.store import events
from legion.store.board import projects, tickets
from legion.store.database.transactions import ReadTransaction
from legion.wire.board import WaitState

_LONGEST = 25.0
_RECENT = 200
_PAUSE_FACTOR, _LONGEST_PAUSE = 24, 0.5
"""A client that asks again after every event then costs at most a twenty-fifth of a processor."""
_LOOK_EVERY = 0.1
"""Seconds between two looks, during such a pause, whether all tickets have ended."""
_HOLDS_FOR_A_PERSON = (Rule.BUDGET, Rule.PERSON_IS_BUSY)
_HELD = (State.QUEUED, State.REVIEWING)
_LONG_BACKOFF = 8.0
"""Seconds: the backoff after the fourth failure in a row."""
_NEEDS_A_PERSON = (
    ParkReason.PAUSED,
    ParkReason.RED_BASELINE,
    ParkReason.QUESTION,
    ParkReason.BUDGET,
    ParkReason.PROVIDER,
    ParkReason.OUTSIDE,
)


def wait(
    context: Trees, news: CommitSignal, cwd: str | None, ids: list[int], after_event: int, timeout: float
) -> WaitState:
    """Return when all are settled, when an event follows `after_event`, or when the time is up."""
    deadline = time.monotonic() + min(timeout, _LONGEST)
    project = registry.find(context, cwd).id if cwd and not ids else None
    while True:
        started = time.monotonic()
        state = _state(context, project, ids)
        ended = time.monotonic()
        if state.settled:
            return state
        if state.last_event > after_event:
            if not _ended_within(context, project, ids, min(_PAUSE_FACTOR * (ended - started), _LONGEST_PAUSE)):
                return state
            continue
        if not news.wait(state.last_event, deadline - time.monotonic()):
            return state


def _ended_within(context: Board, project: int | None, ids: list[int], seconds: float) -> bool:
    """Wait so long, or until all of them have ended."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, _LOOK_EVERY))
        with context.store.read() as tx:
            if ids and all(state in ENDED for state in tickets.states_of(tx, ids).values()):
                return True
            if project is not None and tickets.how_many_live(tx, project) == 0:
                return True
    return False


def _state(context: Trees, project: int | None, ids: list[int]) -> WaitState:
    with context.store.read() as tx:
        wanted = tickets.get_many(tx, ids) if ids else _unresolved(tx, project)
        stuck = _stuck(context, tx, wanted)
        lines = TicketLines(context, tx, wanted)
        return WaitState(
            settled=all(ticket.ended or ticket.id in stuck for ticket in wanted),
            tickets=[lines.line(ticket) for ticket in wanted],
            stuck=sorted(stuck),
            last_event=events.last(tx),
        )


def _unresolved(tx: ReadTransaction, project: int | None) -> tuple[Ticket, ...]:
    """The live and the failed tickets: one that failed before the wait started must not count as success."""
    ended = tickets.recent(tx, project, limit=_RECENT)
    return (*tickets.live(tx, project=project), *(ticket for ticket in ended if ticket.state is State.FAILED))


def _stuck(context: Board, tx: ReadTransaction, wanted: tuple[Ticket, ...]) -> set[int]:
    """Tickets that will not end without a person, so that waiting for them is useless."""
    live = {ticket.id: ticket for ticket in tickets.live(tx)}
    edges = {number: list(ticket.spec.after) for number, ticket in live.items()}
    states = {number: ticket.state for number, ticket in live.items()}
    ended = tickets.states_of(tx, sorted({other for after in edges.values() for other in after} - set(live)))
    known = projects.all(tx)
    blocked_projects = {project.id for project in known if _is_blocked(context, tx, project)}
    paused = {project.id for project in known if project.paused}
    blocked = {number for number, ticket in live.items() if _needs_a_person(context, ticket, blocked_projects)}
    blocked |= {number for number, ticket in live.items() if ticket.state is State.QUEUED and ticket.project in paused}
    seen_as = {number: State.STOPPED if number in blocked else state for number, state in states.items()}
    hopeless = board.hopeless(edges, {**ended, **seen_as}) | blocked
    return {ticket.id for ticket in wanted if ticket.id in hopeless and ticket.state not in ENDED}


def _needs_a_person(context: Board, ticket: Ticket, blocked_projects: set[int]) -> bool:
    hold = context.live.scheduler.holds.get(ticket.id)
    if ticket.state in _HELD and hold is not None and hold.rule in _HOLDS_FOR_A_PERSON:
        return True
    if ticket.parked is not None:
        return ticket.parked.reason in _NEEDS_A_PERSON
    kind = {State.CHECKING: JobKind.CHECK, State.REVIEWING: JobKind.REVIEW}.get(ticket.state, JobKind.RUN)
    return ticket.project in blocked_projects or _keeps_breaking(context, kind, ticket.id)


def _is_blocked(context: Board, tx: ReadTransaction, project: Project) -> bool:
    """Nothing moves in it until a person acts: it is not trusted, or its merge queue fails again and again."""
    untrusted = not projects.is_trusted(tx, project.id, project.config_hash)
    unreadable = project.id in context.live.scheduler.unreadable.current
    return untrusted or unreadable or _keeps_breaking(context, JobKind.LAND, project.id)


def _keeps_breaking(context: Board, kind: JobKind, subject: int) -> bool:
    """The job is retried, but it failed several times in a row, so the waiting client should know."""
    backoff = context.live.scheduler.backoffs.get((kind, subject))
    return backoff is not None and backoff.length >= _LONG_BACKOFF
