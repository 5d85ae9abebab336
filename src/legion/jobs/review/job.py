"""The review job: one reader reads a ticket's change in a checkout of its own, and its verdict is weighed.

Steps, each of which may find its work done already: checkout, setup, spec, runner, wait, conclude. The run's row is
written in the transaction that claims the job. What the reader leaves in its checkout is thrown away; only its last
message counts. Where nobody is left to read, the job only says what the readings come to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from legion.domain.agents.teams import RolePart
from legion.domain.errors import StateConflict
from legion.domain.review.verdicts import (
    OVERRULED,
    MalformedVerdict,
    ReviewRequest,
    WeighedVerdict,
    findings_of,
    parse,
    weigh,
)
from legion.domain.runs import MOST_GENERATIONS, Outcome, Run
from legion.domain.scheduling.claims import Claim
from legion.domain.tickets.ticket import Park, ParkReason, State, Step, Ticket
from legion.jobs.agent import claude
from legion.jobs.agent.model_access import NoModelAccess
from legion.jobs.agent.spec import NoProgram
from legion.jobs.attempts import escalation, review_rounds
from legion.jobs.checks import reviewers
from legion.jobs.context import Context, ProjectContext
from legion.jobs.review import coverage, reviewer_run
from legion.jobs.supervise import journal_events, questions
from legion.jobs.supervise import outcome as judging
from legion.jobs.supervise import wait as attending
from legion.jobs.supervise.usage import stopped_for_budget
from legion.jobs.workspace import environment, quota
from legion.runner.launch import EndedRun, LostRun
from legion.store.board import tickets, verdicts
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import claims, runs
from legion.system import crash
from legion.system.crash import Point

_READ = (State.REVIEWING, State.LANDING, State.DONE)
"""Where a change may be read: before it lands, while it does and after."""
_MOST_REFUSED = 2
"""Answers that cannot be used: after the first the reader is asked once more."""
_TOO_LATE = "stopped before its program was started"
_OPENED_NOTHING = "it opened no file, and judged by the difference in its prompt alone"


@dataclass(frozen=True, kw_only=True)
class _ReviewEnd:
    """How a reader's run ended, and what came of it."""

    outcome: Outcome
    detail: str
    weighed: WeighedVerdict | None = None
    refused: str = ""
    """Why its answer cannot be used."""
    final: bool = False
    """Nobody asks again."""
    waits: Park | None = None
    """What keeps it from reading now."""


def begin(tx: Transaction, ticket_id: int) -> None:
    """The run of the next reader, unless one has begun. Raises Conflict where there is nothing to do."""
    if _run(tx, ticket_id) is not None:
        return
    ticket = tickets.get(tx, ticket_id)
    pending = verdicts.pending(tx, ticket) if ticket.state in _READ else ()
    if pending:
        runs.start(tx, ticket_id, pending[0].attempt, role=pending[0].reader, part=RolePart.READ)
    elif ticket.state is not State.REVIEWING:
        raise StateConflict(f"There is nothing to read of ticket {ticket_id}.")


def review(context: Context, claim: Claim) -> None:
    with context.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
        this_run = _run(tx, ticket.id)
        mine = _reading(tx, ticket, this_run) if this_run is not None else None
    project_context = context.workshop(ticket.project)
    end = None
    if this_run is not None:
        end = _end(context, project_context, ticket, mine, this_run)
        environment.release(context, this_run, end.outcome)
        claude.revoke_pass(context, this_run)
        questions.close_all(context, this_run)
    _conclude(context, project_context, claim, this_run, mine, end)
    if this_run is not None:
        project_context.worktrees.discard(this_run.seat)


def _run(tx: ReadTransaction, ticket_id: int) -> Run | None:
    """The reader at work."""
    return next((run for run in runs.active_of(tx, ticket_id) if run.part is RolePart.READ), None)


def _reading(tx: ReadTransaction, ticket: Ticket, this_run: Run) -> ReviewRequest | None:
    """What the run is for; None where its ticket has gone on without it."""
    pending = verdicts.pending(tx, ticket) if ticket.state in _READ else ()
    return next((one for one in pending if one.reader == this_run.role and one.attempt == this_run.attempt), None)


def _end(
    context: Context, project_context: ProjectContext, ticket: Ticket, mine: ReviewRequest | None, this_run: Run
) -> _ReviewEnd:
    try:
        ended = _until_end(context, project_context, ticket, mine, this_run)
    except NoProgram as missing:
        return _ReviewEnd(outcome=Outcome.NOT_STARTED, detail=missing.message, refused=missing.message, final=True)
    except NoModelAccess as missing:
        wait = Park(ParkReason.PROVIDER, missing.message)
        return _ReviewEnd(outcome=Outcome.REFUSED, detail=missing.message, waits=wait)
    if ended is None:
        return _ReviewEnd(outcome=Outcome.STOPPED, detail=_TOO_LATE)
    return _judge(context, project_context, ticket, mine, this_run, ended)


def _until_end(
    context: Context, project_context: ProjectContext, ticket: Ticket, mine: ReviewRequest | None, this_run: Run
) -> EndedRun | LostRun | None:
    def prepare() -> None:
        assert mine is not None, "only what is wanted is prepared"
        reviewer_run.prepare(context, project_context, ticket, mine, this_run)

    def start() -> None:
        crash.reach(Point.REVIEW_BEFORE_LAUNCH)
        context.launcher.start(context.data.runs / this_run.name)
        crash.reach(Point.REVIEW_AFTER_LAUNCH)

    asker = questions.QuestionSource(project=ticket.project, ticket=ticket.id)
    return attending.run_to_end(
        context,
        this_run,
        wanted=lambda: mine is not None and _wanted(context, mine),
        prepare=prepare,
        start=start,
        hear=journal_events.listener(context, asker, this_run),
    )


def _wanted(context: Context, mine: ReviewRequest) -> bool:
    with context.store.read() as tx:
        ticket = tickets.get(tx, mine.ticket)
        return ticket.state in _READ and any(one.id == mine.id for one in verdicts.pending(tx, ticket))


def _judge(
    context: Context,
    project_context: ProjectContext,
    ticket: Ticket,
    mine: ReviewRequest | None,
    this_run: Run,
    ended: EndedRun | LostRun,
) -> _ReviewEnd:
    outcome, detail = judging.outcome(ended)
    plain = _ReviewEnd(outcome=outcome, detail=detail)
    match outcome:
        case Outcome.LOST if this_run.generation >= MOST_GENERATIONS:
            return _ReviewEnd(
                outcome=outcome, detail=detail, refused=f"{detail} {this_run.generation} times", final=True
            )
        case Outcome.STOPPED if (over := quota.exceeded(context, this_run)) is not None:
            return _ReviewEnd(outcome=outcome, detail=over.reason, refused=over.reason)
        case Outcome.STOPPED if empty := stopped_for_budget(context, this_run):
            # Nothing is begun again before there is something to spend, and the question is about that budget.
            return _ReviewEnd(outcome=outcome, detail=empty)
        case Outcome.LOST | Outcome.STOPPED | Outcome.INTERRUPTED:
            return plain
        case Outcome.LIMITED:
            until = judging.limit_ends(context, this_run, ended)
            wait = Park(ParkReason.LIMIT, f"the provider does not serve {this_run.role} for now: {detail}", until)
            return _ReviewEnd(outcome=outcome, detail=detail, waits=wait)
        case Outcome.OUT_OF_BUDGET:
            wait = Park(ParkReason.BUDGET, f"{detail}: `legion resume {ticket.id}` gives it as much again")
            return _ReviewEnd(outcome=outcome, detail=detail, waits=wait)
        case Outcome.REFUSED:
            wait = Park(ParkReason.PROVIDER, f"{detail}: mend it, then `legion resume {ticket.id}`")
            return _ReviewEnd(outcome=outcome, detail=detail, waits=wait)
        case Outcome.NOT_STARTED:
            return _ReviewEnd(outcome=outcome, detail=detail, refused=detail, final=True)
        case Outcome.FAILED | Outcome.TIMED_OUT | Outcome.GAVE_UP:
            return _ReviewEnd(outcome=outcome, detail=detail, refused=f"the program did not come to its end ({detail})")
        case Outcome.FINISHED:
            return plain if mine is None else _read(context, project_context, ticket, mine, this_run, plain)


def _read(
    context: Context,
    project_context: ProjectContext,
    ticket: Ticket,
    mine: ReviewRequest,
    this_run: Run,
    plain: _ReviewEnd,
) -> _ReviewEnd:
    """The verdict in its last message, weighed against what the same reader said before."""
    with context.store.read() as tx:
        said = verdicts.said_by(tx, ticket.id, mine.reader)
    try:
        verdict = parse(
            reviewer_run.last_words(context, this_run),
            reviewer_run.subject(context, project_context, ticket, mine, this_run),
        )
        weighed = weigh(
            verdict, findings_of(said), reviewer_run.since(project_context, said[-1] if said else None, mine)
        )
    except MalformedVerdict as wrong:
        return _ReviewEnd(outcome=plain.outcome, detail=f"no verdict: {wrong}", refused=str(wrong))
    if coverage.files_opened(context, project_context, mine, this_run) == frozenset():
        weighed = replace(weighed, notes=(*weighed.notes, _OPENED_NOTHING))
    but = f", though {OVERRULED}" if OVERRULED in weighed.notes else ""
    return _ReviewEnd(outcome=plain.outcome, detail=f"verdict: {weighed.verdict.ruling.value}{but}", weighed=weighed)


def _conclude(
    context: Context,
    project_context: ProjectContext,
    claim: Claim,
    this_run: Run | None,
    mine: ReviewRequest | None,
    end: _ReviewEnd | None,
) -> None:
    """Run, verdict, ticket and claim change together. A person who took the ticket away meanwhile is not overruled."""
    with context.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
    most = reviewers.rounds(context, project_context, ticket)
    crash.reach(Point.REVIEW_BEFORE_CONCLUDE)
    with context.store.write() as tx:
        if not claims.still_mine(tx, claim):
            return
        if this_run is not None and end is not None:
            runs.end(tx, this_run.id, end.outcome, end.detail)
        ticket = tickets.get(tx, claim.subject)
        wanted = mine is not None and any(one.id == mine.id for one in verdicts.pending(tx, ticket))
        if wanted and mine is not None and end is not None:
            _write_down(tx, ticket, mine, end)
        if ticket.state is State.REVIEWING:
            waits: Step | None = end.waits if end is not None and wanted else None
            step = waits or review_rounds.next_step(tx, ticket, most=most, within=context.user.questions.answer_within)
            if step is not None:
                escalation.apply_step(context, tx, ticket, judging.staggered(tx, step))
        claims.finish(tx, claim)
    crash.reach(Point.REVIEW_AFTER_CONCLUDE)


def _write_down(tx: Transaction, ticket: Ticket, mine: ReviewRequest, end: _ReviewEnd) -> None:
    if end.weighed is not None:
        verdicts.give(tx, mine.id, end.weighed.verdict, end.weighed.notes)
        return
    # A ticket that does not wait for the reading cannot be parked for it either.
    aside = end.waits.detail if end.waits is not None and ticket.state is not State.REVIEWING else ""
    if why := end.refused or aside:
        refused = verdicts.refuse(tx, mine.id, why)
        if end.final or aside or refused.refused >= _MOST_REFUSED:
            verdicts.give(tx, mine.id, None)
