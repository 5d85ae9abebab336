"""The plan job: one round of a planner, or of an epic's last reader. Its final message is read, checked and recorded.

Steps, each of which may find its work done already: checkout, spec, runner, wait, check, conclude. The run's row is
written in the transaction that claims the job. Findings stay with the plan, so the next decision starts the next round.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from legion.domain.errors import StateConflict
from legion.domain.plans import plan as plans
from legion.domain.plans.answer import OTHER, PlanQuestion, Reading, parse, parse_points, said_of
from legion.domain.plans.checks import PlanFacts, findings, of_points
from legion.domain.plans.draft import MalformedDraft, PlanDraft, keep_approved
from legion.domain.plans.plan import GoalPlan, PlanAuthor, PlanSource, PlanState
from legion.domain.plans.specification import SpecStage, fault, kept_files, next_stage, stages, with_documents
from legion.domain.questions import QuestionKind
from legion.domain.runs import MOST_GENERATIONS, Outcome, Run
from legion.domain.scheduling.decide import Claim
from legion.domain.text import count
from legion.jobs.agent.preparation import Workplace
from legion.jobs.agent.resume_prompt import final_message
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.machine_runs import executor
from legion.jobs.machine_runs.executor import AgentRun, RunOutcome
from legion.jobs.plan import facts, planner_run
from legion.jobs.supervise.outcome import limit_ends
from legion.jobs.supervise.questions import QuestionSource
from legion.jobs.supervise.wait import CrashPoints, RunEnd, finish
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import quota
from legion.store.board import goals, questions
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import claims, runs
from legion.system import crash
from legion.system.crash import Point

_POINTS = CrashPoints(before=Point.PLAN_BEFORE_CONCLUDE, after=Point.PLAN_AFTER_CONCLUDE)

Record = Callable[[Transaction, GoalPlan], None]


@dataclass(frozen=True, kw_only=True)
class PlannerEnd:
    """How a planner's run ended, and how the plan moves by it."""

    outcome: Outcome
    detail: str
    record: Record | None = None
    """None: the plan stays as it is, and the round starts again."""


def begin(tx: Transaction, plan_id: int, machine: str = "") -> None:
    """Start the planner's run, unless one runs. Raises StateConflict where there is nothing to plan.

    `machine`: where; empty: on the head.
    """
    if _run(tx, plan_id) is not None:
        return
    if plan_id not in [one.id for one in goals.being_planned(tx)]:
        raise StateConflict(f"There is nothing to plan of P{plan_id}.")
    plan = goals.get(tx, plan_id)
    if plan.state is PlanState.ASKING:
        plan = goals.save(tx, plan, plans.resumed(plan))
    runs.start_planning(tx, plan, machine)


def plan(context: Context, claim: Claim) -> None:
    with context.store.read() as tx:
        this_run, planned = _run(tx, claim.subject), goals.get(tx, claim.subject)
    if this_run is None:
        with context.store.write() as tx:
            claims.finish(tx, claim)
        return
    project = context.project(planned.project)
    end = _end(context, project, planned, this_run)

    def record(tx: Transaction, _: str) -> None:
        current = goals.get(tx, planned.id)
        # A person may have dropped it meanwhile.
        if end.record is not None and current.version == planned.version:
            end.record(tx, current)

    finish(context, claim, this_run, RunEnd(outcome=end.outcome, detail=end.detail), record, _POINTS)
    executor.host_of(context, project, this_run).put_away(this_run)


def _run(tx: ReadTransaction, plan_id: int) -> Run | None:
    return next((run for run in runs.active(tx) if run.plan == plan_id), None)


def _end(context: Context, project: ProjectContext, planned: GoalPlan, this_run: Run) -> PlannerEnd:
    def tree(place: Workplace) -> Path:
        crash.reach(Point.PLAN_BEFORE_WORKTREE)
        return executor.checkout(project, this_run, place)

    work = AgentRun(
        run=this_run,
        place=lambda: planner_run.place(context, project, planned),
        tree=tree,
        prepared=lambda _: planner_run.prepared_input(context, project, planned),
        wanted=lambda: _wanted(context, planned),
        source=QuestionSource(project=planned.project),
        launch_points=CrashPoints(before=Point.PLAN_BEFORE_LAUNCH, after=Point.PLAN_AFTER_LAUNCH),
    )
    made = executor.carry_out(context, project, work)
    if isinstance(made, RunOutcome):
        return _judge(context, project, planned, this_run, made)
    if made.outcome is Outcome.STOPPED:
        return PlannerEnd(outcome=made.outcome, detail=made.detail)
    return _failed(made.outcome, made.detail)


def _wanted(context: Board, planned: GoalPlan) -> bool:
    with context.store.read() as tx:
        return goals.get(tx, planned.id).state is PlanState.PLANNING


def _judge(context: Context, project: ProjectContext, planned: GoalPlan, this_run: Run, made: RunOutcome) -> PlannerEnd:
    outcome, detail = made.outcome, made.detail
    match outcome:
        case Outcome.LOST if this_run.generation >= MOST_GENERATIONS:
            return _failed(outcome, f"{detail} {this_run.generation} times")
        case Outcome.STOPPED if (over := quota.exceeded(context, this_run)) is not None:
            return _failed(outcome, over.reason)
        case Outcome.LOST | Outcome.STOPPED:
            return PlannerEnd(outcome=outcome, detail=detail)
        case Outcome.LIMITED:
            until = limit_ends(context, this_run, made.ended)
            return PlannerEnd(outcome=outcome, detail=detail, record=_holds(until, detail))
        case Outcome.FINISHED | Outcome.GAVE_UP:
            message = final_message(context.data.runs / this_run.name)
            return read_answer(context, project, planned, this_run, message)
        case _:
            return _failed(outcome, f"the planner did not finish ({detail})")


def read_answer(
    context: Context, project: ProjectContext, planned: GoalPlan, this_run: Run, message: str
) -> PlannerEnd:
    """The document of its specification, the plan, or the questions in its final message, checked."""
    with context.store.read() as tx:
        stage = planner_run.stage_of(tx, planned)
    if stage is not None:
        return _read_document(context, planned, this_run, stage, message)
    try:
        if planned.source is PlanSource.READ:
            reading = parse_points(message)
            record = _found(context, project, planned, reading, this_run)
            return PlannerEnd(outcome=Outcome.FINISHED, detail=said_of(reading[0]), record=record)
        answer = parse(message, may_ask=planned.may_ask)
    except MalformedDraft as wrong:
        record = _is_unusable(str(wrong), this_run)
        return PlannerEnd(outcome=Outcome.FINISHED, detail=f"no plan: {wrong}", record=record)
    if isinstance(answer, tuple):
        within = context.user.questions.answer_within
        return PlannerEnd(outcome=Outcome.FINISHED, detail="it asks first", record=_asks(answer, within))
    if planned.keep_docs:
        answer = added(context, project, planned, answer)
    record = _proposes(facts.checker(context, project, planned, answer), answer, this_run)
    return PlannerEnd(
        outcome=Outcome.FINISHED, detail=f"a plan of {count(len(answer.tickets), 'ticket')}", record=record
    )


def _read_document(context: Board, planned: GoalPlan, this_run: Run, stage: SpecStage, message: str) -> PlannerEnd:
    asked = _questions_in(message) if planned.may_ask else ()
    if asked:
        record = _asks(asked, context.user.questions.answer_within)
        return PlannerEnd(outcome=Outcome.FINISHED, detail="it asks first", record=record)
    if wrong := fault(message):
        record = _is_unusable(wrong, this_run)
        return PlannerEnd(outcome=Outcome.FINISHED, detail=f"no document: {wrong}", record=record)
    return PlannerEnd(outcome=Outcome.FINISHED, detail=stage.value, record=_writes(stage, message, this_run))


def _questions_in(message: str) -> tuple[PlanQuestion, ...]:
    """A document may hold examples of JSON, so what is no valid question is part of it."""
    try:
        found = parse(message, may_ask=True)
    except MalformedDraft:
        return ()
    return found if isinstance(found, tuple) else ()


def _writes(stage: SpecStage, text: str, this_run: Run) -> Record:
    def record(tx: Transaction, plan: GoalPlan) -> None:
        goals.add_document(tx, plan.id, stage, text.strip(), this_run.id)
        written = goals.documents_of(tx, plan.id)
        done = f"{stage.value} is done, {len(written)} of {len(stages(short=plan.short))} documents"
        last = next_stage(written, short=plan.short) is None
        goals.save(tx, plan, plans.documented(plan, str(uuid.uuid4()), done, last=last))

    return record


def _failed(outcome: Outcome, why: str) -> PlannerEnd:
    def record(tx: Transaction, plan: GoalPlan) -> None:
        goals.save(tx, plan, plans.failed(plan, why))

    return PlannerEnd(outcome=outcome, detail=why, record=record)


def _holds(until: float, why: str) -> Record:
    def record(tx: Transaction, plan: GoalPlan) -> None:
        goals.save(tx, plan, plans.held(plan, until, f"the provider does not serve for now: {why}"))

    return record


def _is_unusable(why: str, this_run: Run) -> Record:
    def record(tx: Transaction, plan: GoalPlan) -> None:
        moved = goals.save(tx, plan, plans.unusable(plan, why, goals.dispatched(tx, plan.id)))
        goals.record_round(tx, moved, PlanAuthor.PLANNER, usable=False, message=why, run=this_run.id)

    return record


def _proposes(check: Callable[[ReadTransaction, GoalPlan], PlanFacts], answer: PlanDraft, this_run: Run) -> Record:
    def record(tx: Transaction, plan: GoalPlan) -> None:
        known = check(tx, plan)
        whole = keep_approved(known.approved, plan.draft, answer)
        found = findings(whole, known)
        moved = goals.save(tx, plan, replace(plans.answered(plan, whole, found, known.approved), trials=known.trials))
        goals.record_round(tx, moved, PlanAuthor.PLANNER, run=this_run.id, findings=found)

    return record


def _found(context: Context, project: ProjectContext, planned: GoalPlan, answer: Reading, this_run: Run) -> Record:
    """Its commands are run before: the checker of a draft keeps what it finds tried already."""
    points, proposed = answer
    trials = facts.tried(context, project, planned, [one.command for one in points if one.command])
    check = proposed and facts.checker(context, project, replace(planned, trials=trials), proposed)

    def record(tx: Transaction, plan: GoalPlan) -> None:
        known = check(tx, plan) if check else None
        whole = keep_approved(known.approved, plan.draft, proposed) if known and proposed else None
        wrong = (*of_points(points, trials), *(findings(whole, known) if whole and known else ()))
        read = plans.was_read(plan, points, whole, wrong, goals.dispatched(tx, plan.id))
        moved = goals.save(tx, plan, replace(read, trials={**trials, **(known.trials if known else {})}))
        goals.record_round(tx, moved, PlanAuthor.PLANNER, run=this_run.id, findings=wrong)

    return record


def _asks(asked: tuple[PlanQuestion, ...], within: float) -> Record:
    def record(tx: Transaction, plan: GoalPlan) -> None:
        moved = goals.save(tx, plan, plans.asking(plan, asked))
        for key, one in zip(moved.asked, asked, strict=True):
            questions.ask(
                tx,
                key=key,
                kind=QuestionKind.GOAL,
                project=plan.project,
                words=one.text,
                facts={"plan": plan.name, "goal": plan.goal[:400]},
                choices=(*one.proposals, OTHER),
                fallback=one.proposals[0],
                deadline=tx.now + within,
            )

    return record


# Adds the ticket that lands a specification's documents to a plan.


def added(context: Board, project: ProjectContext, plan: GoalPlan, draft: PlanDraft) -> PlanDraft:
    with context.store.read() as tx:
        written = goals.documents_of(tx, plan.id)
    return with_documents(draft, plan.goal, kept_files(project.config.plans.docs, plan.name, written))
