"""`legion rewind`: returns tree and conversation of a ticket to an earlier moment, where its next attempt starts.

One transaction records the goal; everything else follows from it. A run that is still alive is then stopped and its
work is saved, by this daemon or the next one, before the next attempt starts.
"""

from __future__ import annotations

from legion.domain.errors import NotFound, StateConflict
from legion.domain.tickets.offers import may
from legion.domain.tickets.rewinds import moment
from legion.domain.tickets.ticket import Rewind, State, Ticket
from legion.jobs.trees import Trees
from legion.jobs.workspace import rewind_points
from legion.service.tickets.lookup import end_runs, get_ticket, refuse_mid_landing
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import ticket_holders
from legion.store.work import rewinds, runs
from legion.system import crash
from legion.system.crash import Point
from legion.wire.tickets import Acted, RewindTo


def rewind(context: Trees, ticket_id: int, wanted: RewindTo) -> Acted:
    where = moment(wanted.to)
    with context.store.read() as tx:
        ticket = _rewindable(tx, ticket_id)
    project = context.project(ticket.project)
    goal = rewind_points.goal(context, project, ticket, where)
    crash.reach(Point.REWIND_BEFORE_MOVE)
    with context.store.write() as tx:
        ticket = _rewindable(tx, ticket_id)
        latest = runs.latest(tx, ticket_id)
        if latest is None:
            raise NotFound(f"Ticket {ticket_id} has no run yet; there is nothing to rewind to.")
        reason = f"a person rewound it to {goal.words}"
        tickets.move(tx, ticket_id, Rewind(goal.ground, reason, wanted.feedback))
        rewinds.add(tx, moment=str(where), latest=latest, source=goal.source, point=goal.point)
        active = runs.active_of(tx, ticket_id)
    crash.reach(Point.REWIND_AFTER_MOVE)
    end_runs(context, active)
    crash.reach(Point.REWIND_AFTER_STOP)
    back = f"`legion rewind {ticket_id} --to {latest.id}` restores its present state"
    return Acted(
        tickets=[ticket_id], message=f"Ticket {ticket_id} continues from {goal.words} as its next attempt; {back}."
    )


def _rewindable(tx: ReadTransaction, ticket_id: int) -> Ticket:
    ticket = get_ticket(tx, ticket_id)
    if ticket.state is State.DONE:
        raise StateConflict(f"Ticket {ticket_id} has landed. `legion undo {ticket_id}` reverts it.")
    if not may("rewind", ticket):
        raise StateConflict(f"Ticket {ticket_id} has no agent; there is nothing to rewind.")
    if ticket_id in ticket_holders.tickets(tx):
        raise StateConflict(f"A standing agent works on ticket {ticket_id}; its work there cannot be rewound.")
    refuse_mid_landing(tx, ticket)
    return ticket
