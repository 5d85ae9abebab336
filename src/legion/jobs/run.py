"""The run job: an agent works on a ticket until its program ends; what it left is saved and judged.

Steps, each of which may find its work done already: worktree, setup, spec, runner, wait, save, judge. The runner
outlives us: after a crash the next generation of this job finds it living, ended or lost, and goes on from there.
"""

from __future__ import annotations

from pathlib import Path

from legion.domain.attempts import next_try
from legion.domain.jobs import Claim
from legion.domain.rules import Rule
from legion.domain.runs import Outcome, Run
from legion.domain.teams import Advice, Part
from legion.domain.tickets import (
    AskReview,
    Fail,
    Park,
    ParkReason,
    Planted,
    Propose,
    Prove,
    Resume,
    State,
    Step,
    Ticket,
)
from legion.git.errors import TreeGone
from legion.jobs import (
    advising,
    agents,
    asking,
    attending,
    check,
    claude,
    climbing,
    environment,
    judging,
    listening,
    planning,
    quota,
    setup,
    undoing,
)
from legion.jobs.access import NoAccess
from legion.jobs.agents import NoProgram
from legion.jobs.saving import Saved, branch_name, save, worktree_name
from legion.jobs.world import Workshop, World
from legion.runner.launch import Ended, Lost
from legion.runner.spec import write_spec
from legion.store import advice, jobs, runs, tickets
from legion.system import crash
from legion.system.crash import Point

_TOO_LATE = "stopped before its program was started"


def run(world: World, claim: Claim) -> None:
    with world.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
        this_run = runs.at_work(tx, ticket.id)
    assert this_run is not None, "a run row is written in the transaction that starts it"
    if this_run.ended_at is not None:
        _finish_claim(world, claim)
        return
    shop = world.workshop(ticket.project)
    if ticket.wish.undoes is not None:
        _undo(world, claim, shop, ticket, this_run)
        return
    try:
        ended = _end(world, shop, ticket, this_run)
    except NoProgram as impossible:
        _conclude(world, claim, this_run, Outcome.NOT_STARTED, impossible.message, None, Fail(impossible.message))
        return
    except NoAccess as missing:
        wait = Park(ParkReason.PROVIDER, missing.message)
        _conclude(world, claim, this_run, Outcome.REFUSED, missing.message, None, wait)
        return
    if ended is None:
        _conclude(world, claim, this_run, Outcome.STOPPED, _TOO_LATE, None, Resume(_TOO_LATE))
        return
    if this_run.part is Part.ADVISE:
        said = advising.conclude(world, ticket, this_run, ended)
        _conclude(world, claim, this_run, said.outcome, said.detail, None, said.step, said.rest, spoken=said.advice)
        shop.worktrees.discard(this_run.seat)
        return
    outcome, detail = judging.outcome(ended)
    try:
        saved = save(world, shop, ticket, this_run, shop.worktrees.path(worktree_name(ticket.id)))
    except TreeGone as gone:
        again = next_try(ticket, "its worktree was removed from outside", gone.message)
        _conclude(world, claim, this_run, outcome, detail, None, again)
        return
    waits, plan = planning.outcome(world, ticket, this_run, outcome)
    step = waits or judging.judge(world, shop, ticket, this_run, ended, saved)
    then: Park | Prove | AskReview | None = judging.rest_before(world, ticket, ended, saved, step)
    if isinstance(step, Propose):
        then = check.at_once(world, shop, ticket, step.change)
    _conclude(world, claim, this_run, outcome, detail, saved, step, then, plan=plan)


def _undo(world: World, claim: Claim, shop: Workshop, ticket: Ticket, this_run: Run) -> None:
    step, made = undoing.undo(world, shop, ticket)
    if isinstance(step, Fail):
        _conclude(world, claim, this_run, Outcome.FAILED, step.reason, made, step)
    else:
        _conclude(world, claim, this_run, Outcome.FINISHED, "Legion made the change itself", made, step, Prove())


def run_dir(world: World, this_run: Run) -> Path:
    return world.data.runs / this_run.name


def _end(world: World, shop: Workshop, ticket: Ticket, this_run: Run) -> Ended | Lost | None:
    prepare = advising.prepare if this_run.part is Part.ADVISE else _prepare

    def start() -> None:
        crash.reach(Point.RUN_BEFORE_LAUNCH)
        world.launcher.start(run_dir(world, this_run))
        crash.reach(Point.RUN_AFTER_LAUNCH)

    asker = asking.Asker(project=ticket.project, ticket=ticket.id)
    return attending.until_end(
        world,
        this_run,
        wanted=lambda: _wanted(world, ticket),
        prepare=lambda: prepare(world, shop, ticket, this_run),
        start=start,
        hear=listening.listener(world, asker, this_run),
    )


def _wanted(world: World, ticket: Ticket) -> bool:
    """A person may have stopped or paused the ticket since this job began."""
    with world.store.read() as tx:
        return tickets.get(tx, ticket.id).state is State.WORKING


def _prepare(world: World, shop: Workshop, ticket: Ticket, this_run: Run) -> None:
    """Worktree, dependencies, briefing, spec."""
    assert ticket.base is not None, "a started ticket stands on a base"
    name, branch = worktree_name(ticket.id), branch_name(ticket.id)
    crash.reach(Point.RUN_BEFORE_WORKTREE)
    if ticket.plant is not None:
        tree = shop.worktrees.replant(name, ticket.base, ticket.plant, branch, attempt=ticket.attempt)
        with world.store.write() as tx:
            if tickets.get(tx, ticket.id).version == ticket.version:
                tickets.move(tx, ticket.id, Planted())
    else:
        tree = shop.worktrees.acquire(name, ticket.base, branch)
    crash.reach(Point.RUN_AFTER_WORKTREE)
    setup.ensure(world, shop, tree, setup.record_of(shop, tree))
    around = environment.prepare(world, shop, this_run, tree)
    folder = run_dir(world, this_run)
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    write_spec(folder, agents.spec(world, shop, ticket, this_run, tree, given, around))


def _conclude(
    world: World,
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
    if outcome is Outcome.STOPPED and (over := quota.exceeded(world, this_run)) is not None:
        detail = over.reason
    elif outcome is Outcome.STOPPED and (helped := judging.ended_by(world, this_run)) is not None:
        detail = helped.why
    if saved is not None and saved.nested:
        detail = f"{detail}; not part of the change: nested repositories {', '.join(saved.nested)}"
    if saved is not None and saved.left_out:
        detail = f"{detail}; not part of the change: what [setup] made ({judging.some(saved.left_out)})"
    environment.release(world, this_run, outcome)
    claude.let_go(world, this_run)
    asking.close_all(world, this_run)
    crash.reach(Point.RUN_BEFORE_CONCLUDE)
    with world.store.write() as tx:
        if not jobs.still_mine(tx, claim):
            return
        runs.end(tx, this_run.id, outcome, detail, saved.commit if saved else None)
        ticket = tickets.get(tx, claim.subject)
        if spoken is not None:
            # What was said is not lost where a person took the ticket away meanwhile.
            advice.give(tx, ticket.project, spoken)
        if ticket.state is State.WORKING and spoken is not None:
            tickets.move(tx, ticket.id, step, rule=Rule.ADVICE_FIRST)
        elif ticket.state is State.WORKING:
            climbing.take(world, tx, ticket, judging.staggered(tx, step))
            if plan:
                planning.propose(tx, ticket, plan)
            if then is not None:
                tickets.move(tx, ticket.id, then)
        jobs.finish(tx, claim)
    crash.reach(Point.RUN_AFTER_CONCLUDE)


def _finish_claim(world: World, claim: Claim) -> None:
    with world.store.write() as tx:
        jobs.finish(tx, claim)
