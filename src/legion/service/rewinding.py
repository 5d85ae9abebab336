"""`legion rewind`: tree and conversation of a ticket go back together, and its next attempt goes on from there.

One transaction says where it goes; everything else follows from it. A run that is still alive is no longer wanted then:
it is ended and what it left is saved, by us or by the next daemon, before the next attempt begins.
"""

from __future__ import annotations

from legion.domain.errors import Conflict, NotFound
from legion.domain.rewinds import moment
from legion.domain.tickets import Rewind, State, Ticket
from legion.jobs import rewinding
from legion.jobs.world import World
from legion.service.tickets import active_runs, end_runs, in_our_care, refuse_mid_landing
from legion.store import holdings, rewinds, runs, tickets
from legion.store.database import ReadTransaction
from legion.system import crash
from legion.system.crash import Point
from legion.wire.tickets import Acted
from legion.wire.tickets import Rewind as Wanted


def rewind(world: World, ticket_id: int, wanted: Wanted) -> Acted:
    where = moment(wanted.to)
    with world.store.read() as tx:
        ticket = _fit(tx, ticket_id)
    shop = world.workshop(ticket.project)
    goal = rewinding.goal(world, shop, ticket, where)
    crash.reach(Point.REWIND_BEFORE_MOVE)
    with world.store.write() as tx:
        ticket = _fit(tx, ticket_id)
        latest = runs.latest(tx, ticket_id)
        if latest is None:
            raise NotFound(f"Nobody worked on ticket {ticket_id} yet: there is nothing to go back to.")
        reason = f"a person took it back to {goal.words}"
        tickets.move(tx, ticket_id, Rewind(goal.ground, reason, wanted.feedback))
        rewinds.add(tx, moment=str(where), latest=latest, source=goal.source, point=goal.point)
        active = active_runs(tx, ticket_id)
    crash.reach(Point.REWIND_AFTER_MOVE)
    end_runs(world, active)
    crash.reach(Point.REWIND_AFTER_STOP)
    back = f"`legion rewind {ticket_id} --to {latest.id}` brings back what it had"
    return Acted(
        tickets=[ticket_id], message=f"Ticket {ticket_id} goes on from {goal.words} as its next attempt; {back}."
    )


def _fit(tx: ReadTransaction, ticket_id: int) -> Ticket:
    ticket = in_our_care(tx, ticket_id)
    if ticket.state is State.DONE:
        raise Conflict(f"Ticket {ticket_id} has landed: `legion undo {ticket_id}` takes it back.")
    if ticket.wish.checkpoint or ticket.wish.undoes is not None:
        raise Conflict(f"Ticket {ticket_id} has no agent, so there is nothing to rewind.")
    if ticket_id in holdings.tickets(tx):
        raise Conflict(f"A standing agent works on ticket {ticket_id}: what it did there cannot be rewound.")
    refuse_mid_landing(tx, ticket)
    return ticket
