"""Failed checks: remembered of a target, described to a person, and fixed by a ticket where a checkpoint found them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from legion.domain.checks import CheckResult, Receipt
from legion.domain.events import EventKind
from legion.domain.failure_causes import likely_cause, telling_line
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
from legion.store.board import crews, projects, receipts, tickets
from legion.store.database.transactions import ReadTransaction, Transaction

_FAILED = (CheckResult.RED, CheckResult.SETUP)


def remember(tx: Transaction, project: int, target: str, red: Sequence[Receipt]) -> None:
    """Whether the target itself passes, unless it has moved meanwhile."""
    record, verdict = projects.get(tx, project), CheckResult.RED if red else CheckResult.GREEN
    if record.target != target or (record.baseline_commit, record.baseline_verdict) == (target, verdict):
        return
    kind = EventKind.BASELINE_RED if red else EventKind.BASELINE_GREEN
    facts = {"commit": target, "failed": [receipt.command for receipt in red]}
    projects.save(tx, replace(record, baseline_commit=target, baseline_verdict=verdict), kind, facts)


def on_commit(tx: ReadTransaction, project: int, commit: str) -> tuple[Receipt, ...]:
    """The checks whose last result on this commit is red."""
    last = {receipt.command: receipt for receipt in receipts.for_commit(tx, project, commit)}
    return tuple(receipt for receipt in last.values() if receipt.verdict in _FAILED)


def sentences(context: Board, red: Iterable[Receipt]) -> list[str]:
    return [_sentence(context, receipt) for receipt in red]


def by_ids(tx: ReadTransaction, ids: object) -> tuple[Receipt, ...]:
    """The receipts that an event names; events of earlier releases name none."""
    wanted: Sequence[object] = ids if isinstance(ids, list) else ()
    return receipts.get_many(tx, [id for id in wanted if isinstance(id, int)])


def last_of(tx: ReadTransaction, ticket: int) -> Receipt | None:
    """The last red check that a ticket met, of its own or of the merge queue's."""
    named = [by_ids(tx, event.data.get("receipts")) for event in events.of_ticket(tx, ticket)]
    red = [one for some in (receipts.of_ticket(tx, ticket), *named) for one in some if one.verdict in _FAILED]
    return max(red, key=lambda one: one.id, default=None)


def _sentence(context: Board, receipt: Receipt) -> str:
    if receipt.verdict is CheckResult.SETUP:
        return f"`{receipt.label}` was not run: {receipt.tail.strip()}"
    ended = "did not end by itself" if receipt.exit_code is None else f"ended with exit code {receipt.exit_code}"
    last = f", after: {telling_line(receipt.tail)}" if receipt.tail.strip() else ""
    where = f" (`less {context.data.root / receipt.output}` shows all of its output)" if receipt.output else ""
    cause = likely_cause(receipt.tail, receipt.exit_code)
    return f"`{receipt.label}` {ended}{last}{where}{f'. Likely cause: {cause}' if cause else ''}"


# Creates a ticket that fixes a red checkpoint. The checkpoint, and all that comes after it, waits for that ticket.

_LONGEST_TITLE = 80
_LANDED = "the landed code"


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
        text=f"The landed code fails a checkpoint. Fix the code.\n\n{feedback.checks_failed(red, where=_LANDED)}",
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
