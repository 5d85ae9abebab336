"""`legion undo`: a landed ticket is taken back by a new one, through the same merge queue."""

from __future__ import annotations

from legion.domain.errors import StateConflict
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import State, Ticket
from legion.git.merge.candidates import MergeConflict as Conflicting
from legion.jobs.context import Context, ProjectContext
from legion.jobs.landing import reverted, upstream
from legion.jobs.run import revert
from legion.store.board import projects, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.wire.tickets import Acted


def undo(context: Context, ticket_id: int) -> Acted:
    """Refuses at once what could not work; what may have changed until its turn comes is looked at again then."""
    with context.store.read() as tx:
        ticket = _landed(tx, ticket_id)
    project_context = context.workshop(ticket.project)
    upstream.look(context, project_context)
    _refuse_conflict(context, project_context, ticket)
    with context.store.write() as tx:
        ticket = _landed(tx, ticket_id)
        made = _create(tx, ticket)
    return Acted(
        tickets=[made.id],
        message=f"Ticket {made.id} takes ticket {ticket_id} back; it lands when the checks are green: "
        f"`legion wait {made.id}`.",
    )


def _landed(tx: ReadTransaction, ticket_id: int) -> Ticket:
    ticket = tickets.get(tx, ticket_id)
    project = projects.get(tx, ticket.project)
    if project.removed_at is not None:
        raise StateConflict(f"Ticket {ticket_id} belongs to {project.name}, which is no project any more.")
    if ticket.spec.checkpoint:
        raise StateConflict(f"Ticket {ticket_id} is a checkpoint, which changed nothing: there is nothing to undo.")
    if ticket.state is not State.DONE:
        instead = "there is nothing to undo" if ticket.ended else f"`legion stop {ticket_id}` ends it instead"
        raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value} and has not landed: {instead}.")
    by = _undone_by(tx, ticket_id)
    if by is not None:
        how = "is undone" if by.state is State.DONE else "is being undone"
        raise StateConflict(f"Ticket {ticket_id} {how} by ticket {by.id}: `legion undo {by.id}` brings it back.")
    return ticket


def _undone_by(tx: ReadTransaction, ticket_id: int) -> Ticket | None:
    """The ticket that takes it back and was not taken back itself."""
    for other in reversed(tickets.undoing(tx, ticket_id)):
        if other.state in (State.FAILED, State.STOPPED):
            continue
        again = _undone_by(tx, other.id)
        if again is None or again.state is not State.DONE:
            return other
    return None


def _refuse_conflict(context: Context, project_context: ProjectContext, ticket: Ticket) -> None:
    with context.store.read() as tx:
        stood_on = reverted.before(tx, project_context, ticket)
    made = reverted.reverse(
        project_context, project_context.target, ticket, stood_on, text="a look ahead", when=int(ticket.moved_at)
    )
    if made is None:
        raise StateConflict(f"Nothing of ticket {ticket.id} is left in the target: there is nothing to undo.")
    if isinstance(made, Conflicting):
        raise StateConflict(
            f"Ticket {ticket.id} cannot be undone by itself, because {revert.conflict_words(made)}: dispatch a ticket "
            f"that takes it back, or undo what came after it first."
        )


def _create(tx: Transaction, ticket: Ticket) -> Ticket:
    title = f"Undo ticket {ticket.id}: {ticket.spec.title}"
    text = f"This takes back ticket {ticket.id}, which landed as {ticket.landed}."
    spec = TicketSpec(
        title=title[:300],
        text=text,
        epic=ticket.spec.epic,
        priority=ticket.spec.priority,
        # What it may touch is what the other one touched, protected or not.
        files=ticket.spec.files,
        max_attempts=1,
        undoes=ticket.id,
    )
    return tickets.create(tx, ticket.project, spec)
