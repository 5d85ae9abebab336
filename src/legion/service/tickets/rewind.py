"""`legion rewind`: tree and conversation of a ticket go back together, and its next attempt goes on from there.

One transaction says where it goes; everything else follows from it. A run that is still alive is no longer wanted then:
it is ended and what it left is saved, by us or by the next daemon, before the next attempt begins.
"""

from __future__ import annotations

from legion.domain.errors import NotFound, StateConflict
from legion.domain.tickets.rewinds import moment
from legion.domain.tickets.ticket import Rewind, State, Ticket
from legion.jobs.context import Context
from legion.jobs.workspace import rewind_points
from legion.service.tickets.dispatch import active_runs, end_runs, in_our_care, refuse_mid_landing
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import ticket_holders
from legion.store.work import rewinds, runs
from legion.system import crash
from legion.system.crash import Point
from legion.wire.tickets import Acted
from legion.wire.tickets import RewindTo as Wanted


def rewind(context: Context, ticket_id: int, wanted: Wanted) -> Acted:
    where = moment(wanted.to)
    with context.store.read() as tx:
        ticket = _fit(tx, ticket_id)
    project_context = context.workshop(ticket.project)
    goal = rewind_points.goal(context, project_context, ticket, where)
    crash.reach(Point.REWIND_BEFORE_MOVE)
    with context.store.write() as tx:
        ticket = _fit(tx, ticket_id)
        latest = runs.latest(tx, ticket_id)
        if latest is None:
            raise NotFound(f"Nobody worked on ticket {ticket_id} yet: there is nothing to go back to.")
        reason = f"a person took it back to {goal.words}"
        tickets.move(tx, ticket_id, Rewind(goal.ground, reason, wanted.feedback))
        rewinds.add(tx, moment=str(where), latest=latest, source=goal.source, point=goal.point)
        active = active_runs(tx, ticket_id)
    crash.reach(Point.REWIND_AFTER_MOVE)
    end_runs(context, active)
    crash.reach(Point.REWIND_AFTER_STOP)
    back = f"`legion rewind {ticket_id} --to {latest.id}` brings back what it had"
    return Acted(
        tickets=[ticket_id], message=f"Ticket {ticket_id} goes on from {goal.words} as its next attempt; {back}."
    )


def _fit(tx: ReadTransaction, ticket_id: int) -> Ticket:
    ticket = in_our_care(tx, ticket_id)
    if ticket.state is State.DONE:
        raise StateConflict(f"Ticket {ticket_id} has landed: `legion undo {ticket_id}` takes it back.")
    if ticket.spec.checkpoint or ticket.spec.undoes is not None:
        raise StateConflict(f"Ticket {ticket_id} has no agent, so there is nothing to rewind.")
    if ticket_id in ticket_holders.tickets(tx):
        raise StateConflict(f"A standing agent works on ticket {ticket_id}: what it did there cannot be rewound.")
    refuse_mid_landing(tx, ticket)
    return ticket
