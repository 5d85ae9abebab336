"""The run job: starts or adopts a ticket's agent, waits for its end, saves its tree and judges the change.

Steps, each of which may find its work done already: worktree, setup, spec, runner, wait, save, judge. The runner
outlives the daemon: after a crash the next generation of this job finds it living, ended or lost, and continues there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from legion.domain.agents.teams import Advice, RolePart
from legion.domain.plans.specification import KEY, kept_files
from legion.domain.rules import Rule
from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.decide import Claim
from legion.domain.takeovers import Takeover, TakeoverMode, TakeoverStage
from legion.domain.tickets.ladder import next_try
from legion.domain.tickets.ticket import (
    AlreadyThere,
    AskReview,
    Cause,
    Change,
    Fail,
    Park,
    ParkReason,
    Propose,
    Prove,
    Resume,
    StartPointUsed,
    State,
    Step,
    Ticket,
    TryAgain,
)
from legion.git.core.errors import TreeNotMade
from legion.git.core.history import with_trailers
from legion.git.hub.objects import write_commit
from legion.git.merge.candidates import MergeCandidate, MergeConflict
from legion.git.trees.tree import tree_with_files
from legion.jobs.agent import plan_approval, spec, teams
from legion.jobs.agent.preparation import Workplace
from legion.jobs.attempts import escalation, feedback
from legion.jobs.board import Board
from legion.jobs.checks import job
from legion.jobs.checks.candidates import trailers
from legion.jobs.checks.ticket_watch import cancelling
from legion.jobs.context import Context
from legion.jobs.landing.reverted import before, reverse
from legion.jobs.machine_runs import executor
from legion.jobs.machine_runs.executor import AgentRun, NotSaved, NotStarted, RunOutcome
from legion.jobs.run import advisors
from legion.jobs.supervise.outcome import first_paths, judge, judge_change, rest_before, staggered, unfinished
from legion.jobs.supervise.questions import QuestionSource
from legion.jobs.supervise.wait import CrashPoints, RunEnd, finish, was_wheel
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import setup
from legion.jobs.workspace.command import Cancelled, CancelToken
from legion.jobs.workspace.save import AUTHOR, Saved, branch_name, work_subject, worktree_name
from legion.runner import launch
from legion.runner.launch import FreshRun
from legion.store.board import crews, goals, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import claims, runs, takeovers
from legion.system import crash
from legion.system.crash import Point

_POINTS = CrashPoints(before=Point.RUN_BEFORE_CONCLUDE, after=Point.RUN_AFTER_CONCLUDE)


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    """How a run ended, and what becomes of its ticket."""

    end: RunEnd
    step: Step
    then: Park | Prove | AskReview | AlreadyThere | None = None
    """A second step, in the same transaction."""
    plan: str = ""
    """The plan that the agent proposes."""
    advice: Advice | None = None
    held: int | None = None
    """The run, if a person held the conversation in it."""
    planted: str | None = None
    """The start point that the run used."""


def run(context: Context, claim: Claim) -> None:
    with context.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
        this_run = runs.at_work(tx, ticket.id)
    assert this_run is not None, "a run row is written in the transaction that starts it"
    if this_run.ended_at is not None:
        with context.store.write() as tx:
            claims.finish(tx, claim)
        return
    project = context.project(ticket.project)
    if ticket.spec.undoes is not None:
        verdict = _made_by_legion(*undo(context, project, ticket))
    elif written := files_of(context, project, ticket):
        verdict = _made_by_legion(*write(context, project, ticket, written))
    else:
        verdict = _run(context, project, ticket, this_run)
    finish(context, claim, this_run, verdict.end, lambda tx, _: _record(context, tx, claim, verdict), _POINTS)
    if this_run.part is RolePart.ADVISE:
        executor.host_of(context, project, this_run).put_away(this_run)


def _made_by_legion(step: Propose | Fail, made: Saved | None) -> _Verdict:
    saved = made.commit if made is not None else None
    if isinstance(step, Fail):
        return _Verdict(end=RunEnd(outcome=Outcome.FAILED, detail=step.reason, saved=saved), step=step)
    end = RunEnd(outcome=Outcome.FINISHED, detail="Legion made the change itself", saved=saved)
    return _Verdict(end=end, step=step, then=Prove())


def _run(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> _Verdict:
    attended = of_ticket(context, ticket)
    if attended is not None and attended.submitted and isinstance(launch.settle(run_dir(context, this_run)), FreshRun):
        return _judge_submitted(context, project, ticket, this_run)
    advises = this_run.part is RolePart.ADVISE
    describe = advisors.agent_run if advises else agent_run
    try:
        made = executor.carry_out(
            context, project, describe(context, project, ticket, this_run, lambda: _wanted(context, ticket, this_run))
        )
    except TreeNotMade as broken:
        end = RunEnd(outcome=Outcome.NOT_STARTED, detail=broken.message)
        resume = f" Then `legion resume {ticket.id}`."
        return _Verdict(end=end, step=Park(ParkReason.PAUSED, broken.message + resume))
    if isinstance(made, NotStarted):
        return _Verdict(end=RunEnd(outcome=made.outcome, detail=made.detail), step=_not_started(made))
    if advises:
        advised = advisors.conclude(context, ticket, this_run, made)
        end = RunEnd(outcome=made.outcome, detail=advised.detail)
        return _Verdict(end=end, step=advised.step, then=advised.rest, advice=advised.advice)
    return _judge(context, project, ticket, this_run, made)


def _not_started(made: NotStarted) -> Step:
    match made.outcome:
        case Outcome.NOT_STARTED:
            return Fail(made.detail)
        case Outcome.REFUSED:
            return Park(ParkReason.PROVIDER, made.detail)
        case _:
            return Resume(made.detail)


def _judge(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run, made: RunOutcome) -> _Verdict:
    try:
        saved = executor.saved(context, project, ticket, this_run)
    except NotSaved as gone:
        # Only an agent that finished has lost its work with the tree; a limit or a stop is still not its failure.
        step = unfinished(context, ticket, this_run, made.ended) or next_try(ticket, gone.note, gone.message)
        return _Verdict(end=RunEnd(outcome=made.outcome, detail=made.detail, notes=(gone.note,)), step=step)
    waits, plan = plan_approval.outcome(context, ticket, this_run, made.outcome)
    attended = of_ticket(context, ticket)
    if attended is not None and attended.submitted:
        return _judge_change(context, project, ticket, made.outcome, saved)
    decided = waits or step_after(context, ticket, this_run, made.outcome)
    step = decided or judge(context, project, ticket, this_run, made.ended, saved)
    then: Park | Prove | AskReview | AlreadyThere | None = rest_before(context, ticket, made.ended, saved, step)
    if isinstance(step, Propose):
        step = replace(step, claims=feedback.claims_of(context, project, ticket, step.change))
        then = job.next_step_without_checks(context, project, ticket, step.change)
    elif made.outcome is Outcome.FINISHED and not decided and saved.tree == project.hub.tree_of(ticket.base or ""):
        step, there = _after_no_change(context, project, ticket, step)
        then = there or then
    maker = teams.maker(context, project, ticket)
    by = (f"the role {maker.role.name} resolved, with fresh eyes",) if maker.part is RolePart.RESOLVE else ()
    end = RunEnd(outcome=made.outcome, detail=made.detail, notes=(*by, *_left_out(saved)), saved=saved.commit)
    held = this_run.id if was_wheel(context, this_run) else None
    return _Verdict(end=end, step=step, then=then, plan=plan, held=held, planted=ticket.plant)


def _after_no_change(
    context: Context, project: ProjectContext, ticket: Ticket, step: Step
) -> tuple[Step, AlreadyThere | None]:
    """Its proofs decide: another ticket brought its work, or the next attempt sees the red ones."""
    with context.store.read() as tx:
        now = tickets.get(tx, ticket.id)
    cancel = CancelToken()
    with contextlib.suppress(Cancelled), cancelling(context, [now], cancel):
        if (there := job.already_there(context, project, ticket, cancel)) is not None:
            return Propose(there.change), there
        if isinstance(step, TryAgain | Fail) and (red := job.red_proofs(context, project, ticket, cancel)):
            return replace(step, feedback=f"{step.feedback}\n\n{feedback.checks_failed(red, where=_UNTOUCHED)}"), None
    return step, None


_UNTOUCHED = "the code as you left it"


def _judge_submitted(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> _Verdict:
    """A person submitted the change while no program was open: none is started for it."""
    try:
        # Wherever the run was to start, the person's tree is on the head.
        saved = executor.saved(context, project, ticket, replace(this_run, machine=""))
    except NotSaved as gone:
        end = RunEnd(outcome=Outcome.FAILED, detail=gone.message, notes=(gone.note,))
        return _Verdict(end=end, step=Fail(gone.message))
    return _judge_change(context, project, ticket, Outcome.FINISHED, saved)


def _judge_change(context: Board, project: ProjectContext, ticket: Ticket, outcome: Outcome, saved: Saved) -> _Verdict:
    step = judge_change(context, project, ticket, saved, ())
    if isinstance(step, Propose):
        step = replace(step, claims=feedback.claims_of(context, project, ticket, step.change))
    then = job.next_step_without_checks(context, project, ticket, step.change) if isinstance(step, Propose) else None
    end = RunEnd(outcome=outcome, detail="the person submitted it", notes=_left_out(saved), saved=saved.commit)
    return _Verdict(end=end, step=step, then=then)


def _left_out(saved: Saved) -> tuple[str, ...]:
    """What the agent left in the tree that is not part of the change."""
    notes = []
    if saved.nested:
        notes.append(f"not part of the change: nested repositories {', '.join(saved.nested)}")
    if saved.submodules:
        notes.append(f"not part of the change: submodules ({first_paths(saved.submodules)})")
    if saved.left_out:
        notes.append(f"not part of the change: what [setup] made ({first_paths(saved.left_out)})")
    if saved.unsaved:
        notes.append(f"not part of the change: {first_paths(saved.unsaved)}")
    return tuple(notes)


def _record(context: Board, tx: Transaction, claim: Claim, verdict: _Verdict) -> None:
    """Moves the ticket, unless a person stopped or parked it meanwhile."""
    ticket = tickets.get(tx, claim.subject)
    _move(context, tx, ticket, verdict)
    if verdict.advice is None:
        settle(tx, ticket.id, verdict.held)


def _move(context: Board, tx: Transaction, ticket: Ticket, verdict: _Verdict) -> None:
    if verdict.advice is not None:
        # The advice is kept even where a person stopped the ticket meanwhile.
        crews.give_advice(tx, ticket.project, verdict.advice)
    if ticket.state is not State.WORKING:
        return
    if verdict.advice is not None:
        tickets.move(tx, ticket.id, verdict.step, rule=Rule.ADVICE_FIRST)
        return
    if verdict.planted is not None and ticket.plant == verdict.planted:
        ticket = tickets.move(tx, ticket.id, StartPointUsed())
    escalation.apply_step(context, tx, ticket, staggered(tx, verdict.step))
    if verdict.plan:
        plan_approval.propose(tx, ticket, verdict.plan)
    if verdict.then is not None:
        tickets.move(tx, ticket.id, verdict.then)


def run_dir(context: Board, this_run: Run) -> Path:
    return context.data.runs / this_run.name


def agent_run(
    context: Context, project: ProjectContext, ticket: Ticket, this_run: Run, wanted: Callable[[], bool]
) -> AgentRun:
    """The run of a ticket's builder."""
    return AgentRun(
        run=this_run,
        place=lambda: _place(context, project, ticket, this_run),
        tree=lambda place: _tree(context, project, ticket, this_run, place),
        prepared=lambda paths: spec.prepared_input(context, project, ticket, this_run, paths),
        wanted=wanted,
        source=QuestionSource(project=ticket.project, ticket=ticket.id),
        launch_points=advisors.LAUNCH_POINTS,
    )


def _wanted(context: Board, ticket: Ticket, this_run: Run) -> bool:
    """False where a person stopped or paused the ticket since this job started, or gave up what opens for them."""
    with context.store.read() as tx:
        working = tickets.get(tx, ticket.id).state is State.WORKING
        return working and is_wanted(context, tx, ticket, this_run)


def _place(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> Workplace:
    assert ticket.base is not None, "a started ticket has a base"
    with context.store.read() as tx:
        earlier = [run for run in runs.of_ticket(tx, ticket.id, role="") if run.id < this_run.id]
    return Workplace(
        program=spec.of_ticket(context, project, ticket),
        title=ticket.spec.title,
        base=ticket.base,
        start=next((run.saved for run in reversed(earlier) if run.saved is not None), None),
        plant=ticket.plant,
        previous=earlier[-1].name if earlier else "",
        saves=True,
        # No agent has worked in the tree before the first run, so it is as the target was, unless it was planted.
        landed="" if earlier or ticket.plant is not None else ticket.base,
        filters_of=ticket.base,
        own_variables={"LEGION_URL": context.url},
    )


def _tree(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run, place: Workplace) -> Path:
    """The ticket's worktree as it is; after a run on a machine, a new one with the files that came back from there."""
    name, branch = worktree_name(ticket.id), branch_name(ticket.id)
    crash.reach(Point.RUN_BEFORE_WORKTREE)
    setup.drop_stale_pool(project)
    with context.store.read() as tx:
        before = [run for run in runs.of_ticket(tx, ticket.id, role="") if run.id < this_run.id][-1:]
    if place.plant is not None:
        tree = project.worktrees.replant(name, place.base, place.plant, branch, attempt=ticket.attempt)
        with context.store.write() as tx:
            if tickets.get(tx, ticket.id).version == ticket.version:
                tickets.move(tx, ticket.id, StartPointUsed())
    elif all(map(executor.is_here, before)):
        tree = project.worktrees.acquire(name, place.base, branch)
    else:
        start = project.hub.tree_of(place.start or place.base)
        # Numbers of attempts are positive, so the record of this tree is none of theirs.
        tree = project.worktrees.replant(name, place.base, start, branch, attempt=-this_run.id)
    crash.reach(Point.RUN_AFTER_WORKTREE)
    return tree


# Decides the next step after a run at which a person sits: its agent works alone again, or the ticket waits.

TAKEN = "a person takes over its conversation"
GIVEN_BACK = "the person gave its conversation back"


def of_ticket(context: Board, ticket: Ticket) -> Takeover | None:
    with context.store.read() as tx:
        return takeovers.of_ticket(tx, ticket.id)


def is_wanted(context: Board, tx: ReadTransaction, ticket: Ticket, this_run: Run) -> bool:
    """False for a run that opens for a person who gave up meanwhile."""
    attended = takeovers.of_ticket(tx, ticket.id)
    return not was_wheel(context, this_run) or (attended is not None and attended.opens(this_run.id))


def step_after(context: Board, ticket: Ticket, this_run: Run, outcome: Outcome) -> Step | None:
    """The next step where a person decides it; None: the run is judged as any other."""
    if was_wheel(context, this_run):
        return Resume(GIVEN_BACK)
    attended = of_ticket(context, ticket)
    if attended is None:
        return None
    if attended.mode is TakeoverMode.WHEEL:
        taken = GIVEN_BACK if attended.stage is TakeoverStage.WITHDRAWN else TAKEN
        return Resume(taken) if outcome is Outcome.INTERRUPTED else None
    if attended.submitted or outcome in (Outcome.LOST, Outcome.NOT_STARTED):
        return None
    how = f"`legion resume {ticket.id}` opens it again, `legion agents submit {ticket.id}` submits its change"
    return Park(ParkReason.PAUSED, f"its program has ended: {how}")


def settle(tx: Transaction, ticket_id: int, held: int | None) -> None:
    """In the transaction that moves the ticket: a wheel lasts for one run, a submission for one judgement.

    `held` is the run in which a person held the conversation.
    """
    attended = takeovers.of_ticket(tx, ticket_id)
    if attended is None:
        return
    if attended.mode is TakeoverMode.WHEEL:
        over = attended.stage is TakeoverStage.WITHDRAWN or (held is not None and attended.opens(held))
        if over or tickets.get(tx, ticket_id).state is not State.QUEUED:
            takeovers.end(tx, ticket=ticket_id)
    elif attended.submitted:
        takeovers.put(tx, replace(attended, submitted=False))


# Makes the change of a ticket that lands a specification: its documents as files, without an agent.


def files_of(context: Board, project: ProjectContext, ticket: Ticket) -> dict[str, str]:
    """The documents that a ticket lands; none for a ticket of any other kind."""
    with context.store.read() as tx:
        origin = goals.origin_of(tx, ticket.id)
        if origin is None or origin[1] != KEY or not goals.get(tx, origin[0]).keep_docs:
            return {}
        plan = goals.get(tx, origin[0])
        written = goals.documents_of(tx, plan.id)
    return kept_files(project.config.plans.docs, plan.name, written)


def write(
    context: Board, project: ProjectContext, ticket: Ticket, files: dict[str, str]
) -> tuple[Propose | Fail, Saved | None]:
    """The change that such a ticket proposes, made on the target as it is now."""
    target = project.target
    tree = tree_with_files(project.hub, target, {path: text.encode() for path, text in files.items()})
    if tree == project.hub.tree_of(target):
        return Fail("the target has these documents already"), None
    stamp = AUTHOR.stamp(int(ticket.moved_at))
    message = with_trailers(f"{work_subject(project, ticket)}\n".encode(), trailers(context, project, ticket))
    commit = write_commit(project.hub, tree=tree, parents=(target,), author=stamp, committer=stamp, message=message)
    project.hub.keep(f"wip/{ticket.id}/documents-{ticket.attempt}", commit)
    saved = Saved(commit=commit, tree=tree, changed=True, nested=(), left_out=())
    return Propose(Change(base=target, commit=commit)), saved


# Reverts a landed ticket: builds the reverse of its change as a change of its own, without an agent.


def undo(context: Board, project: ProjectContext, ticket: Ticket) -> tuple[Propose | Fail, Saved | None]:
    """The change that a ticket of this kind proposes, made on the target as it is now."""
    assert ticket.spec.undoes is not None, "only a ticket that undoes another is reverted"
    with context.store.read() as tx:
        landed = tickets.get(tx, ticket.spec.undoes)
        stood_on = before(tx, project, landed)
    target = project.target
    text = f"{work_subject(project, ticket)}\n"
    text = with_trailers(text.encode(), trailers(context, project, ticket)).decode()
    made = reverse(project, target, landed, stood_on, text=text, when=int(ticket.moved_at))
    match made:
        case MergeCandidate(commit=commit, tree=tree):
            project.hub.keep(f"wip/{ticket.id}/undo-{ticket.attempt}", commit)
            saved = Saved(commit=commit, tree=tree, changed=True, nested=(), left_out=())
            return Propose(Change(base=target, commit=commit)), saved
        case MergeConflict():
            return Fail(f"it cannot be reverted: {describe_conflict(made)}", cause=Cause.CONFLICT), None
        case None:
            return Fail(f"nothing of ticket {landed.id} is left in the target"), None


def describe_conflict(conflict: MergeConflict) -> str:
    named = ", ".join(file.path for file in conflict.files[:3])
    return f"what landed after it changed the same lines ({named})"
