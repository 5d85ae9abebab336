"""Warm conversations: a ticket of an epic starts as a copy of a conversation that has read the repository already.

`[agents] warm` turns it on. Every problem means a fresh conversation: nothing waits for a warm one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from legion.domain.events import EventKind
from legion.domain.runs import Outcome, Run
from legion.domain.tickets.ticket import Ticket
from legion.drivers.profile import RunInput
from legion.jobs.agent.model_run import AgentProgram, RunPaths
from legion.jobs.agent.resume_prompt import is_first
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.store import events
from legion.store.board import goals, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import runs

log = logging.getLogger(__name__)

MOST_TOKENS = 80_000
"""A longer conversation is not copied: each request of the ticket would carry it, and reading again is cheaper."""
_TEXT = """\
This conversation is a copy of that of another agent of this project, which {did}. That work is over; you are
the agent of the ticket below. Use what it has read. Your worktree is the current folder: a path of its folder means the
same file in yours, and files may have changed since, so read a file again before you change it."""


def with_source(
    context: Board,
    project: ProjectContext,
    ticket: Ticket,
    this_run: Run,
    chosen: AgentProgram,
    given: RunInput,
    paths: RunPaths,
) -> RunInput:
    """The input with the conversation that the run copies; unchanged where it starts a fresh one or continues."""
    if not (project.config.agents.warm and ticket.spec.epic and chosen.capabilities.rewinds) or given.fork_of:
        return given
    with context.store.read() as tx:
        before = [run for run in runs.of_ticket(tx, ticket.id, role="") if run.id < this_run.id]
        found = list(_sources(tx, ticket))
    if any(run.conversation != this_run.conversation for run in before) or not is_first(context, this_run):
        # After failures a fresh conversation is wanted for its fresh look.
        return given
    source = next((run for run in found if _is_usable(project, chosen, run)), None)
    if source is None:
        return given
    place = chosen.driver.transcript(project.agents / source.seat, source.conversation)
    try:
        if place is None:
            raise FileNotFoundError("its file is gone")
        chosen.driver.take_transcript(place, source.conversation, paths.state, paths.tree)
    except OSError as problem:
        log.warning(
            "ticket %s starts a fresh conversation: that of %s cannot be copied (%s)", ticket.id, source.name, problem
        )
        return given
    _record(context, ticket, source)
    did = "has planned your ticket" if source.plan is not None else f"has worked on ticket {source.ticket}"
    text = _TEXT.format(did=did)
    return replace(given, fork_of=source.conversation, resume_prompt=f"{text}\n\n{given.prompt}")


def _sources(tx: ReadTransaction, ticket: Ticket) -> Iterator[Run]:
    """The planner of the ticket, else of its epic, then the agents of the epic, first the one that finished first."""
    made = goals.origin_of(tx, ticket.id)
    plans = [made[0]] if made is not None else []
    plans += [plan.id for plan in goals.of_project(tx, ticket.project) if plan.epic == ticket.spec.epic]
    for plan in dict.fromkeys(plans):
        yield from runs.of_plan(tx, plan)[-1:]
    siblings = (other.id for other in tickets.of_epic(tx, ticket.project, ticket.spec.epic) if other.id != ticket.id)
    yield from sorted((run for one in siblings if (run := runs.latest(tx, one))), key=lambda run: run.ended_at or 0.0)


def _is_usable(project: ProjectContext, chosen: AgentProgram, source: Run) -> bool:
    if source.outcome is not Outcome.FINISHED:
        return False
    state = project.agents / source.seat
    if chosen.driver.transcript(state, source.conversation) is None:
        return False
    size = chosen.driver.conversation_size(state, source.conversation)
    return not size.compacted and size.tokens <= MOST_TOKENS


def _record(context: Board, ticket: Ticket, source: Run) -> None:
    data = {"source": source.conversation, "run": source.id, "seat": source.seat}
    with context.store.write() as tx:
        if not any(
            event.kind is EventKind.TICKET_FORKED and event.data == data for event in events.of_ticket(tx, ticket.id)
        ):
            tx.record(EventKind.TICKET_FORKED, project=ticket.project, ticket=ticket.id, data=data)
