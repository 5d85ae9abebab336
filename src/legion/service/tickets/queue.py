"""The merge queue in a person's hands: its page, moving a change in it, and landing one that waits at the gate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from legion.domain.checks import CheckResult, Receipt
from legion.domain.errors import BadInput, StateConflict
from legion.domain.events import Event, EventKind
from legion.domain.landing.queue import QueueGoal, moved
from legion.domain.rules import Rule
from legion.domain.tickets.offers import may
from legion.domain.tickets.ticket import ParkReason, State, Ticket, Unpark
from legion.jobs.board import Board
from legion.jobs.landing import gate
from legion.jobs.landing.queue import waiting_entries
from legion.jobs.live_state import QueueTest
from legion.jobs.trees import Trees
from legion.service.projects import registry
from legion.service.tickets.actions import get_ticket
from legion.store import events
from legion.store.board import receipts, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.wire.board import MergeQueuePage, MoveInQueue, QueueBlame, QueueCheck, QueueLine, QueueTestLine
from legion.wire.tickets import Acted


def land(context: Board, ticket_id: int) -> Acted:
    """Let a change through the gate. One that is still checked or reviewed lands by itself after that."""
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        if ticket.state is State.DONE:
            raise StateConflict(f"Ticket {ticket_id} has landed already: `legion collect` brings it into your branch.")
        if not may("land", ticket):
            raise StateConflict(
                f"Ticket {ticket_id} is {ticket.state.value} and has no change to land. "
                f"`legion edit {ticket_id} --gate auto` lets it land by itself."
            )
        gate.release(tx, ticket)
        waits = _pass(tx, tickets.get(tx, ticket_id))
    return Acted(tickets=[ticket_id], message=waits or f"Ticket {ticket_id} goes into the merge queue.")


def _pass(tx: Transaction, ticket: Ticket) -> str:
    """Wake a ticket that waits at the gate; returns what it still waits for."""
    if ticket.state is State.LANDING:
        return ""
    if ticket.parked is None:
        return f"Ticket {ticket.id} is {ticket.state.value}; it lands by itself once it has passed."
    if ticket.parked.back_to is State.LANDING and ticket.parked.reason in (ParkReason.QUESTION, ParkReason.PAUSED):
        tickets.move(tx, ticket.id, Unpark(), rule=Rule.PERSON)
        return ""
    return f"Ticket {ticket.id} waits for something else first ({ticket.parked.detail}); after that it lands by itself."


def page(context: Trees, cwd: str) -> MergeQueuePage:
    """What waits to land, in order, then what waits for the person."""
    project = context.project_of(registry.find(context, cwd))
    notes = context.live.queue.notes
    with context.store.read() as tx:
        live = tickets.live(tx, project=project.id)
        entries = waiting_entries(context, tx, project.id, live)
        by_id = {ticket.id: ticket for ticket in live}
        gated = {one.ticket for one in entries if gate.waits(tx, project, by_id[one.ticket])}
        aside = [one for one in live if one.parked is not None and one.parked.back_to is State.LANDING]
        lines = [
            QueueLine(
                ticket=one.ticket,
                title=by_id[one.ticket].spec.title,
                state="queued",
                place=place,
                lines=one.lines,
                priority=one.priority,
                since=one.since,
                doing=notes.get(one.ticket) or ("at your gate once it is tested" if one.ticket in gated else ""),
            )
            for place, one in enumerate(entries, start=1)
        ]
        lines += [_aside(one, at_gate=gate.waits(tx, project, one)) for one in aside]
        return MergeQueuePage(
            gate=project.config.landing.gate.value,
            changes=lines,
            tests=running(context, tx, project.id),
            suspects=list(context.live.queue.suspected.get(project.id) or ()),
            blamed=blamed(context, tx, project.id, live),
        )


def _aside(ticket: Ticket, *, at_gate: bool) -> QueueLine:
    assert ticket.parked is not None, "a ticket aside is parked"
    held = ticket.parked.reason is ParkReason.PAUSED
    return QueueLine(
        ticket=ticket.id,
        title=ticket.spec.title,
        state="held" if held or not at_gate else "gate",
        place=0,
        lines=0,
        priority=ticket.spec.priority,
        since=ticket.moved_at,
        doing=ticket.parked.detail,
    )


def move(context: Trees, ticket_id: int, wanted: MoveInQueue) -> Acted:
    """Move a change to the front, to the end, or before another. A batch that is being tested is not interrupted."""
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        live = tickets.live(tx, project=ticket.project)
        order = waiting_entries(context, tx, ticket.project, live)
        queued = [one.ticket for one in order]
        if ticket_id not in queued:
            raise StateConflict(
                f"Ticket {ticket_id} is {ticket.state.value}, not in the merge queue: `legion status queue`."
            )
        goal = _goal(wanted.to, queued, ticket_id)
        for number, place in moved(order, ticket_id, goal).items():
            tickets.set_place(tx, number, place)
        place = [one.ticket for one in waiting_entries(context, tx, ticket.project, _reread(tx, live))].index(ticket_id)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is at place {place + 1} of {len(queued)}.")


def _reread(tx: Transaction, live: tuple[Ticket, ...]) -> tuple[Ticket, ...]:
    return tickets.get_many(tx, [one.id for one in live])


def _goal(word: str, queued: list[int], ticket: int) -> QueueGoal | int:
    if word in (QueueGoal.FIRST.value, QueueGoal.LAST.value):
        return QueueGoal(word)
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 10 else 0
    if number not in queued or number == ticket:
        raise BadInput(f"A change goes `first`, `last`, or before another of the queue, not {word[:40]!r}.")
    return number


_SECONDS = 86_400
_MOST = 8
_LANDS_AFTER_ALL = frozenset({State.LANDING, State.DONE})


def running(context: Board, tx: ReadTransaction, project: int) -> list[QueueTestLine]:
    """The tests that run now, the oldest first."""
    mine = [one for one in context.live.queue.tests.current.values() if one.project == project]
    return [_line(one, receipts.for_tree(tx, project, one.tree)) for one in mine]


def _line(test: QueueTest, known: Iterable[Receipt]) -> QueueTestLine:
    # A red result from before this test is repeated, a green one counts.
    done = {
        one.command: one.verdict.value for one in known if one.verdict is CheckResult.GREEN or one.made_at >= test.since
    }
    checks = [QueueCheck(name=name, state=done.get(command, "waits")) for name, command in test.checks]
    for check in checks:
        if check.state == "waits":
            check.state = "runs"
            break
    return QueueTestLine(
        kind=test.kind.value, tickets=list(test.tickets), upstream=test.upstream, checks=checks, since=test.since
    )


def blamed(context: Board, tx: ReadTransaction, project: int, live: Sequence[Ticket]) -> list[QueueBlame]:
    """Those whose red checks are repeated now, then those of the last day that were sent back and have not landed."""
    now = context.live.queue.blamed.current
    waiting = [
        QueueBlame(
            ticket=one.id, title=one.spec.title, state="blamed", checks=list(now[one.id]), why="", at=one.moved_at
        )
        for one in live
        if one.id in now
    ]
    latest = {
        one.ticket: one
        for one in events.since(tx, project, EventKind.SENT_BACK, context.clock() - _SECONDS)
        if one.ticket is not None and one.ticket not in now
    }
    there = tickets.get_many(tx, [number for number in latest if number in tickets.states_of(tx, latest)])
    back = [_sent_back(tx, one, latest[one.id]) for one in there if one.state not in _LANDS_AFTER_ALL]
    return [*waiting, *sorted(back, key=lambda one: -one.at)[:_MOST]]


def _sent_back(tx: ReadTransaction, ticket: Ticket, event: Event) -> QueueBlame:
    named = event.data.get("receipts")
    failed = receipts.get_many(tx, [int(one) for one in named]) if isinstance(named, list) else ()
    return QueueBlame(
        ticket=ticket.id,
        title=ticket.spec.title,
        state=ticket.state.value,
        checks=list(dict.fromkeys(one.name for one in failed)),
        why=str(event.data.get("why") or ""),
        at=event.at,
    )
