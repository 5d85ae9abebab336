"""`legion undo` reverts a landed ticket by a new one; `legion rewind` returns a ticket to an earlier moment.

One transaction records the goal; everything else follows from it. A run that is still alive is then stopped and its
work is saved, by this daemon or the next one, before the next attempt starts.
"""

from __future__ import annotations

from legion.domain.errors import NotFound, StateConflict
from legion.domain.runs import moment
from legion.domain.tickets.offers import may
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Rewind, State, Ticket
from legion.git.merge.candidates import MergeConflict
from legion.jobs.board import Board
from legion.jobs.landing import reverted, target
from legion.jobs.run import job
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import rewind_points
from legion.service.tickets.actions import end_runs, get_ticket, refuse_mid_landing
from legion.store.board import projects, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import ticket_holders
from legion.store.work import rewinds, runs
from legion.system import crash
from legion.system.crash import Point
from legion.wire.tickets import Acted, RewindTo


def undo(context: Trees, ticket_id: int) -> Acted:
    """Create the reverting ticket. Conflicts are refused here and checked again when its turn comes."""
    with context.store.read() as tx:
        ticket = _landed(tx, ticket_id)
    project = context.project(ticket.project)
    target.fetch(context, project)
    _refuse_conflict(context, project, ticket)
    with context.store.write() as tx:
        ticket = _landed(tx, ticket_id)
        made = _create(tx, ticket)
    return Acted(
        tickets=[made.id],
        message=f"Ticket {made.id} reverts ticket {ticket_id} and lands when the checks pass: `legion wait {made.id}`.",
    )


def _landed(tx: ReadTransaction, ticket_id: int) -> Ticket:
    ticket = tickets.get(tx, ticket_id)
    project = projects.get(tx, ticket.project)
    if project.removed_at is not None:
        raise StateConflict(f"Project {project.name} was removed. Run `legion init` to add it again.")
    if ticket.spec.checkpoint:
        raise StateConflict(f"Ticket {ticket_id} is a checkpoint, which changed nothing; there is nothing to undo.")
    if not may("undo", ticket):
        instead = "there is nothing to undo" if ticket.ended else f"`legion stop {ticket_id}` ends it instead"
        raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value} and has not landed; {instead}.")
    by = _undone_by(tx, ticket_id)
    if by is not None:
        how = "is undone" if by.state is State.DONE else "is being undone"
        raise StateConflict(f"Ticket {ticket_id} {how} by ticket {by.id}. `legion undo {by.id}` restores it.")
    return ticket


def _undone_by(tx: ReadTransaction, ticket_id: int) -> Ticket | None:
    """The ticket that reverts it and was not reverted itself."""
    for other in reversed(tickets.undoing(tx, ticket_id)):
        if other.state in (State.FAILED, State.STOPPED):
            continue
        again = _undone_by(tx, other.id)
        if again is None or again.state is not State.DONE:
            return other
    return None


def _refuse_conflict(context: Board, project: ProjectContext, ticket: Ticket) -> None:
    with context.store.read() as tx:
        base = reverted.before(tx, project, ticket)
    made = reverted.reverse(project, project.target, ticket, base, text="trial revert", when=int(ticket.moved_at))
    if made is None:
        raise StateConflict(f"Nothing of ticket {ticket.id} is left in the target; there is nothing to undo.")
    if isinstance(made, MergeConflict):
        raise StateConflict(
            f"Ticket {ticket.id} cannot be undone alone, because {job.describe_conflict(made)}. Dispatch a ticket "
            f"that reverts it, or undo the later tickets first."
        )


def _create(tx: Transaction, ticket: Ticket) -> Ticket:
    title = f"Undo ticket {ticket.id}: {ticket.spec.title}"
    text = f"This reverts ticket {ticket.id}, which landed as {ticket.landed}."
    spec = TicketSpec(
        title=title[:300],
        text=text,
        epic=ticket.spec.epic,
        priority=ticket.spec.priority,
        # It may touch what the reverted ticket was allowed to touch.
        files=ticket.spec.files,
        max_attempts=1,
        undoes=ticket.id,
    )
    return tickets.create(tx, ticket.project, spec)


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
