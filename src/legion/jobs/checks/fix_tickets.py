"""Creates a ticket that fixes a red checkpoint. The checkpoint, and all that comes after it, waits for that ticket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from legion.domain.checks import Receipt
from legion.domain.events import EventKind
from legion.domain.rules import Rule
from legion.domain.text import count
from legion.domain.tickets.evidence import Bound
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Cause, Fail, Ticket, TryAgain
from legion.jobs.agent import teams
from legion.jobs.agent.spec import NoProgram, choose_program
from legion.jobs.attempts import feedback
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.store import events
from legion.store.board import crews, tickets
from legion.store.database.transactions import ReadTransaction, Transaction

_LONGEST_TITLE = 80


def instead(
    context: Board, project: ProjectContext, tx: Transaction, checkpoint: Ticket, failed: Fail, red: Sequence[Receipt]
) -> TryAgain | Fail:
    """The checkpoint is queued again after its fixing ticket; after the last of them it fails."""
    # A ticket of an agent has the money and rights that the agent gives it, and a checkpoint gives none.
    most = 0 if checkpoint.spec.dispatcher else project.config.checkpoints.fixes
    before = _fixes(tx, checkpoint)
    if before >= most:
        tried = f" after {count(before, 'fixing ticket')}" if before else ""
        return Fail(f"{failed.reason}{tried}", cause=Cause.CHECKS)
    crew = teams.crew(context, project, "")
    builder = crew.builder.role
    try:
        climbs = choose_program(context, project.config, "", builder.driver).capabilities.models
    except NoProgram as missing:
        return Fail(f"{failed.reason}; no agent can fix it: {missing.message}", cause=Cause.CHECKS)
    spec = _spec(tx, project, checkpoint, red, climbs=climbs)
    spec = replace(spec, team=crew.team, crew=crews.keep(tx, crew), model=builder.model, driver=builder.driver)
    fix = tickets.create(tx, checkpoint.project, spec, rule=Rule.RED_IS_FIXED_FIRST)
    tickets.come_after(tx, checkpoint.id, fix.id)
    return TryAgain(f"ticket {fix.id} fixes it: {failed.reason}", feedback.checks_failed(red), cause=Cause.CHECKS)


def _fixes(tx: ReadTransaction, checkpoint: Ticket) -> int:
    """How many it had since a person last retried it."""
    steps = [
        event.data.get("step") for event in events.of_ticket(tx, checkpoint.id) if event.kind is EventKind.TICKET_MOVED
    ]
    taken_up = max((at for at, step in enumerate(steps) if step == "retry"), default=0)
    return steps[taken_up:].count("tryagain")


def _spec(
    tx: ReadTransaction, project: ProjectContext, checkpoint: Ticket, red: Sequence[Receipt], *, climbs: bool
) -> TicketSpec:
    spec = checkpoint.spec
    own = tuple(dict.fromkeys((*spec.proofs, *(receipt.command for receipt in red if not receipt.held_out))))
    failing = [receipt.label for receipt in red]
    return TicketSpec(
        title=f"Fix what checkpoint {checkpoint.id} found: {spec.title[:_LONGEST_TITLE]}",
        text=f"The landed code fails a checkpoint. Fix the code.\n\n{feedback.checks_failed(red, landed=True)}",
        context=_context(tx, checkpoint),
        criteria="\n".join(f"{label} passes" for label in failing),
        proofs=own,
        bound=tuple(
            Bound(criterion=place, by=receipt.command) for place, receipt in enumerate(red) if not receipt.held_out
        ),
        acceptance=spec.acceptance,
        epic=spec.epic,
        priority=spec.priority + 1,
        max_attempts=project.config.agents.attempts,
        climbs=climbs,
    )


def _context(tx: ReadTransaction, checkpoint: Ticket) -> str:
    """The tickets that landed before it: each was green alone."""
    known = tickets.states_of(tx, checkpoint.spec.after)
    before = [f"- {one.id}: {one.spec.title}" for one in tickets.get_many(tx, sorted(known))]
    return "\n".join(["It came after these tickets, each of which passed by itself:", *before]) if before else ""
