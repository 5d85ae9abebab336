"""Finds a ticket for an action, refuses one that is just landing, and ends the runs of stopped tickets."""

from __future__ import annotations

from collections.abc import Iterable

from legion.domain.agents.teams import RolePart
from legion.domain.errors import Retryable, StateConflict
from legion.domain.runs import Run
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.board import Board
from legion.jobs.run.job import run_dir
from legion.runner import launch
from legion.runner.spec import RunnerError
from legion.store.board import landings, projects, tickets
from legion.store.database.transactions import ReadTransaction

_STOP_GRACE = 1.0


def get_ticket(tx: ReadTransaction, ticket_id: int) -> Ticket:
    """The ticket. Raises StateConflict if its project was removed."""
    ticket = tickets.get(tx, ticket_id)
    project = projects.get(tx, ticket.project)
    if project.removed_at is not None:
        raise StateConflict(f"Project {project.name} was removed. Run `legion init` to add it again.")
    return ticket


def end_runs(context: Board, active: Iterable[Run]) -> None:
    """Ask every runner to stop. One that does not answer is named at the end, and asked again by the job that waits."""
    silent: list[RunnerError] = []
    for run in active:
        kind = JobKind.REVIEW if run.part is RolePart.READ else JobKind.RUN
        context.live.scheduler.backoffs.remove([(kind, run.ticket or 0)])
        try:
            launch.stop(run_dir(context, run), grace=_STOP_GRACE)
        except RunnerError as error:
            silent.append(error)
    if silent:
        raise RunnerError(" ".join(error.message for error in silent))


def mid_landing(tx: ReadTransaction, project: int) -> set[int]:
    """The tickets of a project that are just landing: nothing can stop them."""
    return {number for intent in landings.open_ones(tx, project) for number in dict(intent.tickets)}


def refuse_mid_landing(tx: ReadTransaction, ticket: Ticket) -> None:
    if ticket.state is State.LANDING and ticket.id in mid_landing(tx, ticket.project):
        raise Retryable(f"Ticket {ticket.id} is just landing. Try again in a second.")
