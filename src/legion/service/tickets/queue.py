"""The merge queue in a person's hands: its page, moving a change in it, and landing one that waits at the gate."""

from __future__ import annotations

from legion.domain.errors import BadInput, StateConflict
from legion.domain.landing.queue import QueueGoal, moved
from legion.domain.rules import Rule
from legion.domain.tickets.offers import may
from legion.domain.tickets.ticket import ParkReason, State, Ticket, Unpark
from legion.jobs.context import Context
from legion.jobs.landing import gate
from legion.jobs.landing.queue import waiting_entries
from legion.service.projects import registry
from legion.service.tickets import dispatch, queue_tests
from legion.store.board import tickets
from legion.store.database.transactions import Transaction
from legion.wire.controls import MergeQueuePage, MoveInQueue, QueueLine
from legion.wire.tickets import Acted


def land(context: Context, ticket_id: int) -> Acted:
    """Let a change through the gate. One that is still checked or reviewed lands by itself after that."""
    with context.store.write() as tx:
        ticket = dispatch.get_ticket(tx, ticket_id)
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


def page(context: Context, cwd: str) -> MergeQueuePage:
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
            tests=queue_tests.running(context, tx, project.id),
            suspects=list(context.live.queue.suspected.get(project.id) or ()),
            blamed=queue_tests.blamed(context, tx, project.id, live),
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


def move(context: Context, ticket_id: int, wanted: MoveInQueue) -> Acted:
    """Move a change to the front, to the end, or before another. A batch that is being tested is not interrupted."""
    with context.store.write() as tx:
        ticket = dispatch.get_ticket(tx, ticket_id)
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
