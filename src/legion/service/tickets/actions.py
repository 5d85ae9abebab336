"""Actions on a ticket (stop, retry, drop, pause, resume) and on all of them (stop, drop what ended, freeze, thaw)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from legion.domain.agents.agent import ROOT
from legion.domain.agents.mail import MessageKind
from legion.domain.agents.teams import RolePart
from legion.domain.errors import Retryable, StateConflict
from legion.domain.events import EventKind
from legion.domain.rules import Rule
from legion.domain.runs import Run, seated
from legion.domain.scheduling.decide import JobKind
from legion.domain.text import count
from legion.domain.tickets.offers import may
from legion.domain.tickets.ticket import Park, ParkReason, Retry, State, Stop, Ticket, Unpark
from legion.jobs.agent import plan_approval
from legion.jobs.board import Board
from legion.jobs.run.job import run_dir
from legion.jobs.trees import Trees
from legion.runner import launch
from legion.runner.spec import RunnerError
from legion.service.projects import registry
from legion.store.board import landings, projects, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents, mail
from legion.store.work import runs
from legion.wire.tickets import Acted

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


def stop(context: Board, ticket_id: int, *, by: str = "") -> Acted:
    """`by` names the agent that stops it; empty: the person does."""
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        refuse_mid_landing(tx, ticket)
        tickets.move(tx, ticket_id, Stop(reason=f"stopped by the agent {by}") if by else Stop())
        active = runs.active_of(tx, ticket_id)
    end_runs(context, active)
    return Acted(
        tickets=[ticket_id], message=f"Ticket {ticket_id} is stopped; `legion retry {ticket_id}` starts it again."
    )


def stop_all(context: Board, cwd: str) -> Acted:
    project = registry.find(context, cwd)
    active: list[Run] = []
    stopped: list[int] = []
    with context.store.write() as tx:
        landing = mid_landing(tx, project.id)
        for ticket in tickets.live(tx, project=project.id):
            if ticket.id not in landing:
                tickets.move(tx, ticket.id, Stop())
                active += runs.active_of(tx, ticket.id)
                stopped.append(ticket.id)
    end_runs(context, active)
    return Acted(tickets=stopped, message=_stop_message(stopped, sorted(landing)))


def _stop_message(stopped: list[int], landing: list[int]) -> str:
    parts = [f"{count(len(stopped), 'ticket is', 'tickets are')} stopped."] if stopped else []
    if landing:
        which = f"Ticket {landing[0]} was" if len(landing) == 1 else f"Tickets {', '.join(map(str, landing))} were"
        parts.append(f"{which} not stopped: a ticket that is just landing cannot be; `legion undo N` reverts it.")
    return " ".join(parts) or "No open tickets."


def retry(context: Board, ticket_id: int, feedback: str) -> Acted:
    with context.store.write() as tx:
        get_ticket(tx, ticket_id)
        tickets.move(tx, ticket_id, Retry(feedback))
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is queued again.")


def drop(context: Trees, ticket_id: int) -> Acted:
    """Remove a ticket from the board. Its worktrees move to the trash; what landed stays landed."""
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        if not may("drop", ticket):
            raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value}. Run `legion stop {ticket_id}` first.")
        if runs.active_of(tx, ticket_id):
            raise Retryable(f"The agent of ticket {ticket_id} is still stopping. Try again in a moment.")
        waiting = tickets.dependants(tx, ticket_id)
        if waiting and ticket.state is not State.DONE:
            listed = ", ".join(str(other) for other in waiting)
            raise StateConflict(f"Other tickets come after ticket {ticket_id}: {listed}. Drop them first.")
        tickets.drop(tx, ticket_id)
    project = context.project(ticket.project)
    for name in project.worktrees.names():
        if (seated(name) or ("", 0))[:2] == ("ticket", ticket_id):
            project.worktrees.discard(name)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is dropped; its files are in {project.trash}.")


def pause(context: Board, ticket_id: int) -> Acted:
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        refuse_mid_landing(tx, ticket)
        tickets.move(tx, ticket_id, Park(ParkReason.PAUSED, "paused by a person"))
        active = runs.active_of(tx, ticket_id)
    end_runs(context, active)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is paused; `legion resume {ticket_id}` resumes it.")


def resume(context: Board, ticket_id: int) -> Acted:
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        if not may("resume_ticket", ticket):
            raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value}, not paused; there is nothing to resume.")
        plan_approval.refuse_unapproved(tx, ticket)
        if ticket.parked is not None and ticket.parked.reason is ParkReason.RED_BASELINE:
            project = projects.get(tx, ticket.project)
            projects.save(tx, replace(project, baseline_commit=None, baseline_verdict=None))
        tickets.move(tx, ticket_id, Unpark(), rule=Rule.PERSON)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is resumed.")


_ALL = 1_000_000


def drop_ended(context: Trees, cwd: str) -> Acted:
    """Newest first, so that what comes after a ticket goes before it. A ticket that others wait for stays."""
    project = registry.find(context, cwd)
    with context.store.read() as tx:
        ended = sorted((ticket.id for ticket in tickets.recent(tx, project.id, limit=_ALL)), reverse=True)
    kept: list[int] = []
    for id in ended:
        try:
            drop(context, id)
        except (StateConflict, Retryable):
            kept.append(id)
    dropped = sorted(set(ended) - set(kept))
    message = f"{count(len(dropped), 'ended ticket is', 'ended tickets are')} off the board."
    if kept:
        message += f" Still needed or being stopped: {', '.join(str(id) for id in sorted(kept))}."
    return Acted(tickets=dropped, message=message)


_FROZEN = "frozen: `legion resume --all` resumes it"
_THAWED = "The person stopped all work for a while and has resumed it. Continue where you were."
_AT_WORK = (State.WORKING, State.REVIEWING)


def freeze(context: Board) -> Acted:
    """Pause every project and stop every agent at work. All work is kept, and no attempt is counted. Checks, landings
    and planners that have started end by themselves.
    """
    active: list[Run] = []
    frozen: list[int] = []
    with context.store.write() as tx:
        for project in projects.all(tx):
            if not project.paused:
                projects.save(tx, replace(project, paused=True, frozen=True), EventKind.PROJECT_PAUSED, {})
            landing = mid_landing(tx, project.id)
            for ticket in tickets.live(tx, project=project.id):
                if ticket.state in _AT_WORK and ticket.id not in landing:
                    tickets.move(tx, ticket.id, Park(ParkReason.PAUSED, _FROZEN))
                    active += runs.active_of(tx, ticket.id)
                    frozen.append(ticket.id)
        turns = [run for run in runs.active(tx) if run.agent is not None]
        working = {run.agent for run in turns}
        for agent in agents.standing(tx):
            if agent.number in working:
                mail.send(
                    tx, sender=ROOT, recipient=agent.id, kind=MessageKind.NOTICE, text=_THAWED, project=agent.project
                )
    end_runs(context, active)
    _interrupt(context, turns)
    many = count(len(frozen), "ticket")
    return Acted(
        tickets=frozen, message=f"Everything is frozen: {many} stopped. `legion resume --all` resumes all of it."
    )


def _interrupt(context: Board, turns: list[Run]) -> None:
    """A message that waits for the end of the freeze makes each of these agents continue."""
    for run in turns:
        try:
            launch.stop(context.data.runs / run.name, grace=1.0)
        except RunnerError:
            continue


def thaw(context: Board) -> Acted:
    """Resume exactly what the freeze stopped. A project that was paused before stays paused."""
    woken: list[int] = []
    with context.store.write() as tx:
        for project in projects.all(tx):
            if project.frozen:
                projects.save(tx, replace(project, paused=False, frozen=False), EventKind.PROJECT_RESUMED, {})
            for ticket in tickets.live(tx, project=project.id):
                if ticket.parked is not None and ticket.parked.detail == _FROZEN:
                    tickets.move(tx, ticket.id, Unpark(), rule=Rule.PERSON)
                    woken.append(ticket.id)
    many = count(len(woken), "ticket resumes", "tickets resume")
    return Acted(tickets=woken, message=f"Everything is thawed: {many}.")
