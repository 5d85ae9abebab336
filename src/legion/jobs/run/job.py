"""The run job: an agent works on a ticket until its program ends; what it left is saved and judged.

Steps, each of which may find its work done already: worktree, setup, spec, runner, wait, save, judge. The runner
outlives us: after a crash the next generation of this job finds it living, ended or lost, and goes on from there.
"""

from __future__ import annotations

from pathlib import Path

from legion.domain.agents.teams import Advice, RolePart
from legion.domain.rules import Rule
from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.claims import Claim
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
from legion.git.core.errors import TreeGone
from legion.jobs.agent import claude, plan_approval, spec
from legion.jobs.agent.model_access import NoModelAccess
from legion.jobs.agent.spec import NoProgram
from legion.jobs.attempts import escalation
from legion.jobs.checks import job
from legion.jobs.context import Context, ProjectContext
from legion.jobs.run import advisors, revert
from legion.jobs.supervise import journal_events, questions
from legion.jobs.supervise import outcome as judging
from legion.jobs.supervise import wait as attending
from legion.jobs.workspace import environment, quota, setup
from legion.jobs.workspace.save import Saved, branch_name, save, worktree_name
from legion.runner.launch import EndedRun, LostRun
from legion.runner.spec import write_spec
from legion.store.board import advice, tickets
from legion.store.work import claims, runs
from legion.system import crash
from legion.system.crash import Point

_TOO_LATE = "stopped before its program was started"


def run(context: Context, claim: Claim) -> None:
    with context.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
        this_run = runs.at_work(tx, ticket.id)
    assert this_run is not None, "a run row is written in the transaction that starts it"
    if this_run.ended_at is not None:
        _finish_claim(context, claim)
        return
    project_context = context.workshop(ticket.project)
    if ticket.spec.undoes is not None:
        _undo(context, claim, project_context, ticket, this_run)
        return
    try:
        ended = _end(context, project_context, ticket, this_run)
    except NoProgram as impossible:
        _conclude(context, claim, this_run, Outcome.NOT_STARTED, impossible.message, None, Fail(impossible.message))
        return
    except NoModelAccess as missing:
        wait = Park(ParkReason.PROVIDER, missing.message)
        _conclude(context, claim, this_run, Outcome.REFUSED, missing.message, None, wait)
        return
    if ended is None:
        _conclude(context, claim, this_run, Outcome.STOPPED, _TOO_LATE, None, Resume(_TOO_LATE))
        return
    if this_run.part is RolePart.ADVISE:
        said = advisors.conclude(context, ticket, this_run, ended)
        _conclude(context, claim, this_run, said.outcome, said.detail, None, said.step, said.rest, spoken=said.advice)
        project_context.worktrees.discard(this_run.seat)
        return
    outcome, detail = judging.outcome(ended)
    try:
        saved = save(
            context, project_context, ticket, this_run, project_context.worktrees.path(worktree_name(ticket.id))
        )
    except TreeGone as gone:
        again = next_try(ticket, "its worktree was removed from outside", gone.message)
        _conclude(context, claim, this_run, outcome, detail, None, again)
        return
    waits, plan = plan_approval.outcome(context, ticket, this_run, outcome)
    step = waits or judging.judge(context, project_context, ticket, this_run, ended, saved)
    then: Park | Prove | AskReview | None = judging.rest_before(context, ticket, ended, saved, step)
    if isinstance(step, Propose):
        then = job.next_step_without_checks(context, project_context, ticket, step.change)
    _conclude(context, claim, this_run, outcome, detail, saved, step, then, plan=plan)


def _undo(context: Context, claim: Claim, project_context: ProjectContext, ticket: Ticket, this_run: Run) -> None:
    step, made = revert.undo(context, project_context, ticket)
    if isinstance(step, Fail):
        _conclude(context, claim, this_run, Outcome.FAILED, step.reason, made, step)
    else:
        _conclude(context, claim, this_run, Outcome.FINISHED, "Legion made the change itself", made, step, Prove())


def run_dir(context: Context, this_run: Run) -> Path:
    return context.data.runs / this_run.name


def _end(context: Context, project_context: ProjectContext, ticket: Ticket, this_run: Run) -> EndedRun | LostRun | None:
    prepare = advisors.prepare if this_run.part is RolePart.ADVISE else _prepare

    def start() -> None:
        crash.reach(Point.RUN_BEFORE_LAUNCH)
        context.launcher.start(run_dir(context, this_run))
        crash.reach(Point.RUN_AFTER_LAUNCH)

    asker = questions.QuestionSource(project=ticket.project, ticket=ticket.id)
    return attending.run_to_end(
        context,
        this_run,
        wanted=lambda: _wanted(context, ticket),
        prepare=lambda: prepare(context, project_context, ticket, this_run),
        start=start,
        hear=journal_events.listener(context, asker, this_run),
    )


def _wanted(context: Context, ticket: Ticket) -> bool:
    """A person may have stopped or paused the ticket since this job began."""
    with context.store.read() as tx:
        return tickets.get(tx, ticket.id).state is State.WORKING


def _prepare(context: Context, project_context: ProjectContext, ticket: Ticket, this_run: Run) -> None:
    """Worktree, dependencies, briefing, spec."""
    assert ticket.base is not None, "a started ticket stands on a base"
    name, branch = worktree_name(ticket.id), branch_name(ticket.id)
    crash.reach(Point.RUN_BEFORE_WORKTREE)
    if ticket.plant is not None:
        tree = project_context.worktrees.replant(name, ticket.base, ticket.plant, branch, attempt=ticket.attempt)
        with context.store.write() as tx:
            if tickets.get(tx, ticket.id).version == ticket.version:
                tickets.move(tx, ticket.id, StartPointUsed())
    else:
        tree = project_context.worktrees.acquire(name, ticket.base, branch)
    crash.reach(Point.RUN_AFTER_WORKTREE)
    setup.ensure(context, project_context, tree, setup.record_of(project_context, tree))
    around = environment.prepare(context, project_context, this_run, tree)
    folder = run_dir(context, this_run)
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    write_spec(folder, spec.spec(context, project_context, ticket, this_run, tree, given, around))


def _conclude(
    context: Context,
    claim: Claim,
    this_run: Run,
    outcome: Outcome,
    detail: str,
    saved: Saved | None,
    step: Step,
    then: Park | Prove | AskReview | None = None,
    *,
    plan: str = "",
    spoken: Advice | None = None,
) -> None:
    """Run, ticket and claim change together. A person who stopped or parked the ticket meanwhile is not overruled."""
    if outcome is Outcome.STOPPED and (over := quota.exceeded(context, this_run)) is not None:
        detail = over.reason
    elif outcome is Outcome.STOPPED and (helped := judging.ended_by(context, this_run)) is not None:
        detail = helped.why
    if saved is not None and saved.nested:
        detail = f"{detail}; not part of the change: nested repositories {', '.join(saved.nested)}"
    if saved is not None and saved.left_out:
        detail = f"{detail}; not part of the change: what [setup] made ({judging.some(saved.left_out)})"
    environment.release(context, this_run, outcome)
    claude.revoke_pass(context, this_run)
    questions.close_all(context, this_run)
    crash.reach(Point.RUN_BEFORE_CONCLUDE)
    with context.store.write() as tx:
        if not claims.still_mine(tx, claim):
            return
        runs.end(tx, this_run.id, outcome, detail, saved.commit if saved else None)
        ticket = tickets.get(tx, claim.subject)
        if spoken is not None:
            # What was said is not lost where a person took the ticket away meanwhile.
            advice.give(tx, ticket.project, spoken)
        if ticket.state is State.WORKING and spoken is not None:
            tickets.move(tx, ticket.id, step, rule=Rule.ADVICE_FIRST)
        elif ticket.state is State.WORKING:
            escalation.apply_step(context, tx, ticket, judging.staggered(tx, step))
            if plan:
                plan_approval.propose(tx, ticket, plan)
            if then is not None:
                tickets.move(tx, ticket.id, then)
        claims.finish(tx, claim)
    crash.reach(Point.RUN_AFTER_CONCLUDE)


def _finish_claim(context: Context, claim: Claim) -> None:
    with context.store.write() as tx:
        claims.finish(tx, claim)
