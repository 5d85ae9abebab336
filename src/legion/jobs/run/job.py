"""The run job: starts or adopts a ticket's agent, waits for its end, saves its tree and judges the change.

Steps, each of which may find its work done already: worktree, setup, spec, runner, wait, save, judge. The runner
outlives the daemon: after a crash the next generation of this job finds it living, ended or lost, and continues there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from legion.domain.agents.teams import Advice, RolePart
from legion.domain.rules import Rule
from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.decide import Claim
from legion.domain.tickets.attempts import next_try
from legion.domain.tickets.ticket import (
    AskReview,
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
)
from legion.git.core.errors import TreeGone, TreeNotMade
from legion.jobs.agent import plan_approval, spec
from legion.jobs.agent.model_access import NoModelAccess
from legion.jobs.agent.spec import NoProgram
from legion.jobs.attempts import escalation
from legion.jobs.checks import job
from legion.jobs.context import Context, ProjectContext
from legion.jobs.filter_sandbox import NoSandbox
from legion.jobs.machine_runs import placements, remote
from legion.jobs.machines.travel import MachineJob
from legion.jobs.run import advisors, attendance, documents, revert
from legion.jobs.supervise import journal_events, questions, wait
from legion.jobs.supervise import outcome as judging
from legion.jobs.supervise.finish import CrashPoints, RunEnd, finish
from legion.jobs.supervise.wheel import was_wheel
from legion.jobs.workspace import environment, setup
from legion.jobs.workspace.save import Saved, branch_name, save, worktree_name
from legion.runner import launch
from legion.runner.launch import EndedRun, FreshRun, LostRun
from legion.runner.spec import write_spec
from legion.store.board import crews, tickets
from legion.store.database.transactions import Transaction
from legion.store.work import claims, runs
from legion.system import crash
from legion.system.crash import Point

_POINTS = CrashPoints(before=Point.RUN_BEFORE_CONCLUDE, after=Point.RUN_AFTER_CONCLUDE)
_TOO_LATE = "stopped before its program was started"
_TREE_GONE = "its worktree was removed from outside"
_NOT_SAVED = "nothing of its tree has arrived"


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    """How a run ended, and what becomes of its ticket."""

    end: RunEnd
    step: Step
    then: Park | Prove | AskReview | None = None
    """A second step, in the same transaction."""
    plan: str = ""
    """The plan that the agent proposes."""
    advice: Advice | None = None
    held: int | None = None
    """The run, if a person held the conversation in it."""
    planted: bool = False
    """The run's machine used the ticket's start point."""


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
        verdict = _made_by_legion(*revert.undo(context, project, ticket))
    elif written := documents.files_of(context, project, ticket):
        verdict = _made_by_legion(*documents.write(context, project, ticket, written))
    else:
        verdict = _run(context, project, ticket, this_run)
    finish(context, claim, this_run, verdict.end, lambda tx, _: _record(context, tx, claim, verdict), _POINTS)
    if this_run.part is RolePart.ADVISE and not this_run.machine:
        project.worktrees.discard(this_run.seat)


def _made_by_legion(step: Propose | Fail, made: Saved | None) -> _Verdict:
    saved = made.commit if made is not None else None
    if isinstance(step, Fail):
        return _Verdict(end=RunEnd(outcome=Outcome.FAILED, detail=step.reason, saved=saved), step=step)
    end = RunEnd(outcome=Outcome.FINISHED, detail="Legion made the change itself", saved=saved)
    return _Verdict(end=end, step=step, then=Prove())


def _run(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> _Verdict:
    attended = attendance.of_ticket(context, ticket)
    if attended is not None and attended.submitted and isinstance(launch.settle(run_dir(context, this_run)), FreshRun):
        return _judge_submitted(context, project, ticket, this_run)
    try:
        ended = _run_to_end(context, project, ticket, this_run)
    except (NoProgram, NoSandbox) as missing:
        end = RunEnd(outcome=Outcome.NOT_STARTED, detail=missing.message)
        return _Verdict(end=end, step=Fail(missing.message))
    except NoModelAccess as missing:
        end = RunEnd(outcome=Outcome.REFUSED, detail=missing.message)
        return _Verdict(end=end, step=Park(ParkReason.PROVIDER, missing.message))
    except TreeNotMade as broken:
        end = RunEnd(outcome=Outcome.NOT_STARTED, detail=broken.message)
        resume = f" Then `legion resume {ticket.id}`."
        return _Verdict(end=end, step=Park(ParkReason.PAUSED, broken.message + resume))
    if ended is None:
        return _Verdict(end=RunEnd(outcome=Outcome.STOPPED, detail=_TOO_LATE), step=Resume(_TOO_LATE))
    if this_run.part is RolePart.ADVISE:
        advised = advisors.conclude(context, ticket, this_run, ended)
        end = RunEnd(outcome=advised.outcome, detail=advised.detail)
        return _Verdict(end=end, step=advised.step, then=advised.rest, advice=advised.advice)
    return _judge(context, project, ticket, this_run, ended)


def _judge(
    context: Context, project: ProjectContext, ticket: Ticket, this_run: Run, ended: EndedRun | LostRun
) -> _Verdict:
    outcome, detail = judging.outcome(ended)
    if this_run.machine and isinstance(ended, LostRun):
        detail = remote.why_lost(context, this_run)
    try:
        saved = _saved(context, project, ticket, this_run)
    except TreeGone as gone:
        # Only an agent that finished has lost its work with the tree; a limit or a stop is still not its failure.
        note = _NOT_SAVED if this_run.machine else _TREE_GONE
        step = judging.unfinished(context, ticket, this_run, ended) or next_try(ticket, note, gone.message)
        return _Verdict(end=RunEnd(outcome=outcome, detail=detail, notes=(note,)), step=step)
    waits, plan = plan_approval.outcome(context, ticket, this_run, outcome)
    attended = attendance.of_ticket(context, ticket)
    if attended is not None and attended.submitted:
        return _judge_change(context, project, ticket, outcome, saved)
    decided = waits or attendance.step_after(context, ticket, this_run, outcome)
    step = decided or judging.judge(context, project, ticket, this_run, ended, saved)
    then: Park | Prove | AskReview | None = judging.rest_before(context, ticket, ended, saved, step)
    if isinstance(step, Propose):
        then = job.next_step_without_checks(context, project, ticket, step.change)
    end = RunEnd(outcome=outcome, detail=detail, notes=_left_out(saved), saved=saved.commit)
    held = this_run.id if was_wheel(context, this_run) else None
    planted = bool(this_run.machine) and ticket.plant is not None
    return _Verdict(end=end, step=step, then=then, plan=plan, held=held, planted=planted)


def _saved(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> Saved:
    """What the run left in its tree, here or on its machine. Raises TreeGone."""
    tree = project.worktrees.path(worktree_name(ticket.id))
    if not this_run.machine:
        return save(context, project, ticket, this_run, tree)
    saved = remote.saved(context, project, ticket, this_run)
    if saved is None:
        raise TreeGone(str(tree))
    return saved


def _judge_submitted(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> _Verdict:
    """A person submitted the change while no program was open: none is started for it."""
    try:
        saved = save(context, project, ticket, this_run, project.worktrees.path(worktree_name(ticket.id)))
    except TreeGone as gone:
        end = RunEnd(outcome=Outcome.FAILED, detail=gone.message, notes=(_TREE_GONE,))
        return _Verdict(end=end, step=Fail(gone.message))
    return _judge_change(context, project, ticket, Outcome.FINISHED, saved)


def _judge_change(
    context: Context, project: ProjectContext, ticket: Ticket, outcome: Outcome, saved: Saved
) -> _Verdict:
    step = judging.judge_change(context, project, ticket, saved, ())
    then = job.next_step_without_checks(context, project, ticket, step.change) if isinstance(step, Propose) else None
    end = RunEnd(outcome=outcome, detail="the person submitted it", notes=_left_out(saved), saved=saved.commit)
    return _Verdict(end=end, step=step, then=then)


def _left_out(saved: Saved) -> tuple[str, ...]:
    """What the agent left in the tree that is not part of the change."""
    notes = []
    if saved.nested:
        notes.append(f"not part of the change: nested repositories {', '.join(saved.nested)}")
    if saved.submodules:
        notes.append(f"not part of the change: submodules ({judging.first_paths(saved.submodules)})")
    if saved.left_out:
        notes.append(f"not part of the change: what [setup] made ({judging.first_paths(saved.left_out)})")
    if saved.unsaved:
        notes.append(f"not part of the change: {judging.first_paths(saved.unsaved)}")
    return tuple(notes)


def _record(context: Context, tx: Transaction, claim: Claim, verdict: _Verdict) -> None:
    """Moves the ticket, unless a person stopped or parked it meanwhile."""
    ticket = tickets.get(tx, claim.subject)
    _move(context, tx, ticket, verdict)
    if verdict.advice is None:
        attendance.settle(tx, ticket.id, verdict.held)


def _move(context: Context, tx: Transaction, ticket: Ticket, verdict: _Verdict) -> None:
    if verdict.advice is not None:
        # The advice is kept even where a person stopped the ticket meanwhile.
        crews.give_advice(tx, ticket.project, verdict.advice)
    if ticket.state is not State.WORKING:
        return
    if verdict.advice is not None:
        tickets.move(tx, ticket.id, verdict.step, rule=Rule.ADVICE_FIRST)
        return
    if verdict.planted and ticket.plant is not None:
        ticket = tickets.move(tx, ticket.id, StartPointUsed())
    escalation.apply_step(context, tx, ticket, judging.staggered(tx, verdict.step))
    if verdict.plan:
        plan_approval.propose(tx, ticket, verdict.plan)
    if verdict.then is not None:
        tickets.move(tx, ticket.id, verdict.then)


def run_dir(context: Context, this_run: Run) -> Path:
    return context.data.runs / this_run.name


def _run_to_end(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> EndedRun | LostRun | None:
    prepare = advisors.prepare if this_run.part is RolePart.ADVISE else _prepare

    def start() -> None:
        crash.reach(Point.RUN_BEFORE_LAUNCH)
        context.launcher.start(run_dir(context, this_run))
        crash.reach(Point.RUN_AFTER_LAUNCH)

    source = questions.QuestionSource(project=ticket.project, ticket=ticket.id)
    if this_run.machine:
        return remote.run_to_end(
            context,
            this_run,
            job=lambda: _travelling(context, project, ticket, this_run),
            wanted=lambda: _wanted(context, ticket, this_run),
            on_event=journal_events.listener(context, source, this_run),
        )
    return wait.run_to_end(
        context,
        this_run,
        wanted=lambda: _wanted(context, ticket, this_run),
        prepare=lambda: prepare(context, project, ticket, this_run),
        start=start,
        on_event=journal_events.listener(context, source, this_run),
    )


def _travelling(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> MachineJob:
    if this_run.part is RolePart.ADVISE:
        return advisors.for_machine(context, project, ticket, this_run)
    return placements.build_job(context, project, ticket, this_run)


def _wanted(context: Context, ticket: Ticket, this_run: Run) -> bool:
    """False where a person stopped or paused the ticket since this job started, or gave up what opens for them."""
    with context.store.read() as tx:
        working = tickets.get(tx, ticket.id).state is State.WORKING
        return working and attendance.is_wanted(context, tx, ticket, this_run)


def _prepare(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> None:
    """Worktree, dependencies, briefing, spec."""
    assert ticket.base is not None, "a started ticket has a base"
    name, branch = worktree_name(ticket.id), branch_name(ticket.id)
    crash.reach(Point.RUN_BEFORE_WORKTREE)
    setup.drop_stale_pool(project)
    if ticket.plant is not None:
        tree = project.worktrees.replant(name, ticket.base, ticket.plant, branch, attempt=ticket.attempt)
        with context.store.write() as tx:
            if tickets.get(tx, ticket.id).version == ticket.version:
                tickets.move(tx, ticket.id, StartPointUsed())
    else:
        tree = _tree(context, project, ticket, this_run, name, branch)
    crash.reach(Point.RUN_AFTER_WORKTREE)
    with context.store.read() as tx:
        # No agent has worked in the tree before the first run, so it is as the target was, unless it was planted.
        first = ticket.plant is None and runs.of_ticket(tx, ticket.id, role="")[0].id == this_run.id
    setup.ensure(context, project, tree, landed=ticket.base if first else "")
    env = environment.prepare(context, project, this_run, tree)
    folder = run_dir(context, this_run)
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    write_spec(folder, spec.spec(context, project, ticket, this_run, tree, given, env))


def _tree(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run, name: str, branch: str) -> Path:
    """The ticket's worktree as it is; after a run on a machine, a new one with the files that came back from there."""
    assert ticket.base is not None, "a started ticket has a base"
    with context.store.read() as tx:
        earlier = [run for run in runs.of_ticket(tx, ticket.id, role="") if run.id < this_run.id]
    if not earlier or not earlier[-1].machine:
        return project.worktrees.acquire(name, ticket.base, branch)
    start = project.hub.tree_of(next((run.saved for run in reversed(earlier) if run.saved is not None), ticket.base))
    # Numbers of attempts are positive, so the record of this tree is none of theirs.
    return project.worktrees.replant(name, ticket.base, start, branch, attempt=-this_run.id)
