"""Actions on a ticket: stop, retry, drop, pause and resume it; stop all, and drop all that have ended."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.errors import Retryable, StateConflict
from legion.domain.rules import Rule
from legion.domain.runs import Run, seated
from legion.domain.text import count
from legion.domain.tickets.offers import may
from legion.domain.tickets.ticket import Park, ParkReason, Retry, State, Stop, Unpark
from legion.jobs.agent import plan_approval
from legion.jobs.board import Board
from legion.jobs.trees import Trees
from legion.service.projects import registry
from legion.service.tickets.lookup import end_runs, get_ticket, mid_landing, refuse_mid_landing
from legion.store.board import projects, tickets
from legion.store.work import runs
from legion.wire.tickets import Acted


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
