"""The review job: one reviewer reads a ticket's change in a checkout of its own, and its verdict is recorded.

Steps, each of which may find its work done already: checkout, setup, spec, runner, wait, conclude. The run's row is
written in the transaction that claims the job. What the reviewer leaves in its checkout is thrown away; only its final
message counts. Where no review is pending, the job only decides the ticket's next step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

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
from legion.domain.scheduling.decide import Claim
from legion.domain.tickets.ticket import Park, ParkReason, State, Step, Ticket
from legion.jobs.agent.preparation import Workplace
from legion.jobs.agent.resume_prompt import final_message
from legion.jobs.attempts import escalation, review_rounds
from legion.jobs.board import Board
from legion.jobs.checks import reviewers
from legion.jobs.context import Context
from legion.jobs.machine_runs import executor
from legion.jobs.machine_runs.executor import AgentRun, RunOutcome
from legion.jobs.review import reviewer_run
from legion.jobs.supervise.outcome import limit_ends, staggered
from legion.jobs.supervise.questions import QuestionSource
from legion.jobs.supervise.wait import CrashPoints, RunEnd, finish
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import quota
from legion.store.board import tickets, verdicts
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import runs
from legion.system import crash
from legion.system.crash import Point

_POINTS = CrashPoints(before=Point.REVIEW_BEFORE_CONCLUDE, after=Point.REVIEW_AFTER_CONCLUDE)
_READ = (State.REVIEWING, State.LANDING, State.DONE)
"""The states in which a change may be reviewed: before it lands, while it does and after."""
_MOST_REFUSED = 2
"""Unusable answers: after the first one the reviewer is asked once more."""
_OPENED_NOTHING = "it opened no file, and judged by the difference in its prompt alone"


@dataclass(frozen=True, kw_only=True)
class _ReviewEnd:
    """How a reviewer's run ended, and its result."""

    outcome: Outcome
    detail: str
    weighed: WeighedVerdict | None = None
    refused: str = ""
    """Why its answer cannot be used."""
    final: bool = False
    """It is not asked again."""
    waits: Park | None = None
    """What the reviewer waits for."""


def begin(tx: Transaction, ticket_id: int, machine: str = "") -> None:
    """Start the run of the next reviewer, unless one runs. Raises StateConflict where there is nothing to do.

    `machine`: where; empty: on the head.
    """
    if _run(tx, ticket_id) is not None:
        return
    ticket = tickets.get(tx, ticket_id)
    pending = verdicts.pending(tx, ticket) if ticket.state in _READ else ()
    if pending:
        first = pending[0]
        runs.start(tx, ticket_id, first.attempt, role=first.reviewer, part=RolePart.READ, machine=machine)
    elif ticket.state is not State.REVIEWING:
        raise StateConflict(f"There is nothing to review of ticket {ticket_id}.")


def review(context: Context, claim: Claim) -> None:
    with context.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
        this_run = _run(tx, ticket.id)
        mine = _reading(tx, ticket, this_run) if this_run is not None else None
    project = context.project(ticket.project)
    end = None if this_run is None else _end(context, project, ticket, mine, this_run)
    most = reviewers.rounds(context, project, ticket)

    def record(tx: Transaction, _: str) -> None:
        _record(context, tx, claim, mine, end, most, project.config.review.approvals)

    run_end = None if end is None else RunEnd(outcome=end.outcome, detail=end.detail)
    finish(context, claim, this_run, run_end, record, _POINTS)
    if this_run is not None:
        executor.host_of(context, project, this_run).put_away(this_run)


def _run(tx: ReadTransaction, ticket_id: int) -> Run | None:
    """The active run of a reviewer."""
    return next((run for run in runs.active_of(tx, ticket_id) if run.part is RolePart.READ), None)


def _reading(tx: ReadTransaction, ticket: Ticket, this_run: Run) -> ReviewRequest | None:
    """The request that the run answers; None where its ticket has continued without it."""
    pending = verdicts.pending(tx, ticket) if ticket.state in _READ else ()
    return next((one for one in pending if one.reviewer == this_run.role and one.attempt == this_run.attempt), None)


def _end(
    context: Context, project: ProjectContext, ticket: Ticket, mine: ReviewRequest | None, this_run: Run
) -> _ReviewEnd:
    def tree(place: Workplace) -> Path:
        crash.reach(Point.REVIEW_BEFORE_WORKTREE)
        return executor.checkout(project, this_run, place)

    def asked() -> ReviewRequest:
        assert mine is not None, "only a wanted review is prepared"
        return mine

    work = AgentRun(
        run=this_run,
        place=lambda: reviewer_run.place(context, project, ticket, asked()),
        tree=tree,
        prepared=lambda _: reviewer_run.prepared_input(context, project, ticket, asked(), this_run),
        wanted=lambda: mine is not None and _wanted(context, mine),
        source=QuestionSource(project=ticket.project, ticket=ticket.id),
        launch_points=CrashPoints(before=Point.REVIEW_BEFORE_LAUNCH, after=Point.REVIEW_AFTER_LAUNCH),
    )
    made = executor.carry_out(context, project, work)
    if isinstance(made, RunOutcome):
        return _judge(context, project, ticket, mine, this_run, made)
    end = _ReviewEnd(outcome=made.outcome, detail=made.detail)
    match made.outcome:
        case Outcome.NOT_STARTED:
            return replace(end, refused=made.detail, final=True)
        case Outcome.REFUSED:
            return replace(end, waits=Park(ParkReason.PROVIDER, made.detail))
        case _:
            return end


def _wanted(context: Board, mine: ReviewRequest) -> bool:
    with context.store.read() as tx:
        ticket = tickets.get(tx, mine.ticket)
        return ticket.state in _READ and any(one.id == mine.id for one in verdicts.pending(tx, ticket))


def _judge(
    context: Board, project: ProjectContext, ticket: Ticket, mine: ReviewRequest | None, this_run: Run, made: RunOutcome
) -> _ReviewEnd:
    outcome, detail = made.outcome, made.detail
    plain = _ReviewEnd(outcome=outcome, detail=detail)
    match outcome:
        case Outcome.LOST if this_run.generation >= MOST_GENERATIONS:
            return _ReviewEnd(
                outcome=outcome, detail=detail, refused=f"{detail} {this_run.generation} times", final=True
            )
        case Outcome.STOPPED if (over := quota.exceeded(context, this_run)) is not None:
            return _ReviewEnd(outcome=outcome, detail=over.reason, refused=over.reason)
        case Outcome.LOST | Outcome.STOPPED | Outcome.INTERRUPTED:
            return plain
        case Outcome.LIMITED:
            until = limit_ends(context, this_run, made.ended)
            park = Park(ParkReason.LIMIT, f"the provider does not serve {this_run.role} for now: {detail}", until)
            return _ReviewEnd(outcome=outcome, detail=detail, waits=park)
        case Outcome.OUT_OF_BUDGET:
            park = Park(ParkReason.BUDGET, f"{detail}: `legion resume {ticket.id}` gives it as much again")
            return _ReviewEnd(outcome=outcome, detail=detail, waits=park)
        case Outcome.REFUSED:
            park = Park(ParkReason.PROVIDER, f"{detail}: fix it, then `legion resume {ticket.id}`")
            return _ReviewEnd(outcome=outcome, detail=detail, waits=park)
        case Outcome.NOT_STARTED:
            return _ReviewEnd(outcome=outcome, detail=detail, refused=detail, final=True)
        case Outcome.FAILED | Outcome.TIMED_OUT | Outcome.GAVE_UP:
            return _ReviewEnd(outcome=outcome, detail=detail, refused=f"the program did not finish ({detail})")
        case Outcome.FINISHED:
            return plain if mine is None else _read(context, project, ticket, mine, this_run, plain)


def _read(
    context: Board, project: ProjectContext, ticket: Ticket, mine: ReviewRequest, this_run: Run, plain: _ReviewEnd
) -> _ReviewEnd:
    """The verdict in its final message, weighed against the earlier verdicts of the same reviewer."""
    with context.store.read() as tx:
        earlier = verdicts.said_by(tx, ticket.id, mine.reviewer)
    try:
        verdict = parse(
            final_message(context.data.runs / this_run.name),
            reviewer_run.subject(context, project, ticket, mine, this_run),
        )
        weighed = weigh(
            verdict, findings_of(earlier), reviewer_run.since(project, earlier[-1] if earlier else None, mine)
        )
    except MalformedVerdict as wrong:
        return _ReviewEnd(outcome=plain.outcome, detail=f"no verdict: {wrong}", refused=str(wrong))
    if reviewer_run.files_opened(context, project, mine, this_run) == frozenset():
        weighed = replace(weighed, notes=(*weighed.notes, _OPENED_NOTHING))
    but = f", though {OVERRULED}" if OVERRULED in weighed.notes else ""
    return _ReviewEnd(outcome=plain.outcome, detail=f"verdict: {weighed.verdict.ruling.value}{but}", weighed=weighed)


def _record(
    context: Board,
    tx: Transaction,
    claim: Claim,
    mine: ReviewRequest | None,
    end: _ReviewEnd | None,
    most: int,
    needed: int,
) -> None:
    """Records the verdict and moves the ticket, unless a person took it out of review meanwhile."""
    ticket = tickets.get(tx, claim.subject)
    wanted = mine is not None and any(one.id == mine.id for one in verdicts.pending(tx, ticket))
    if wanted and mine is not None and end is not None:
        _record_verdict(tx, ticket, mine, end)
    if ticket.state is State.REVIEWING:
        waits: Step | None = end.waits if end is not None and wanted else None
        within = context.user.questions.answer_within
        step = waits or review_rounds.next_step(tx, ticket, most=most, within=within, needed=needed)
        if step is not None:
            escalation.apply_step(context, tx, ticket, staggered(tx, step))


def _record_verdict(tx: Transaction, ticket: Ticket, mine: ReviewRequest, end: _ReviewEnd) -> None:
    if end.weighed is not None:
        verdicts.give(tx, mine.id, end.weighed.verdict, end.weighed.notes)
        return
    # A ticket that does not wait for its review cannot be parked for it either.
    aside = end.waits.detail if end.waits is not None and ticket.state is not State.REVIEWING else ""
    if why := end.refused or aside:
        refused = verdicts.refuse(tx, mine.id, why)
        if end.final or aside or refused.refused >= _MOST_REFUSED:
            verdicts.give(tx, mine.id, None)
