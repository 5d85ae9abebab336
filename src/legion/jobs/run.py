"""The run job: an agent works on a ticket until its program ends; what it left is saved and judged.

Steps, each of which may find its work done already: worktree, setup, spec, runner, wait, save, judge. The runner
outlives us: after a crash the next generation of this job finds it living, ended or lost, and goes on from there.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from legion.config.project import ProjectConfig
from legion.domain.errors import LegionError, NotFound
from legion.domain.jobs import Claim
from legion.domain.paths import undeclared
from legion.domain.runs import MOST_GENERATIONS, Outcome, Run
from legion.domain.tickets import Change, Fail, Planted, Propose, Prove, Resume, State, Step, Ticket, next_try
from legion.drivers import Outcome as Ending
from legion.drivers.command import briefed
from legion.git.errors import TreeGone
from legion.jobs import feedback, places, setup
from legion.jobs.briefing import briefing
from legion.jobs.saving import Saved, branch_name, save, worktree_name
from legion.jobs.world import Workshop, World
from legion.runner import launch
from legion.runner.launch import Ended, Fresh, Lost
from legion.runner.spec import RunFolder, Spec, write_spec
from legion.store import jobs, runs, tickets
from legion.system import crash, files
from legion.system.crash import Point

_PLANTED_MARKER = re.compile(r"^\+(?:<{7,} target|>{7,} change)\b", re.MULTILINE)

_TOO_LATE = "stopped before its program was started"


class NoProgram(LegionError):
    """Nobody said which program is the agent."""


def run(world: World, claim: Claim) -> None:
    with world.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
        this_run = runs.latest(tx, ticket.id)
    assert this_run is not None, "a run row is written in the transaction that starts it"
    if this_run.ended_at is not None:
        _finish_claim(world, claim)
        return
    shop = world.workshop(ticket.project)
    try:
        ended = _end(world, shop, ticket, this_run)
    except NoProgram as impossible:
        _conclude(world, claim, this_run, Outcome.NOT_STARTED, impossible.message, None, Fail(impossible.message))
        return
    if ended is None:
        _conclude(world, claim, this_run, Outcome.STOPPED, _TOO_LATE, None, Resume(_TOO_LATE))
        return
    outcome, detail = _outcome(ended)
    try:
        saved = save(world, shop, ticket, this_run, shop.worktrees.path(worktree_name(ticket.id)))
    except TreeGone as gone:
        again = next_try(ticket, "its worktree was removed from outside", gone.message)
        _conclude(world, claim, this_run, outcome, detail, None, again)
        return
    step = _judge(world, shop, ticket, this_run, outcome, detail, saved)
    _conclude(world, claim, this_run, outcome, detail, saved, step)


def run_dir(world: World, this_run: Run) -> Path:
    return world.data.runs / this_run.name


def _end(world: World, shop: Workshop, ticket: Ticket, this_run: Run) -> Ended | Lost | None:
    """Adopt the runner of this run, or start it, and wait for its end. None where nobody wants it started any more."""
    folder = run_dir(world, this_run)
    found = launch.find(folder)
    if isinstance(found, Ended | Lost):
        return found
    if isinstance(found, Fresh):
        if not _wanted(world, ticket):
            return None
        _prepare(world, shop, ticket, this_run)
        if not _wanted(world, ticket):
            return None
        crash.reach(Point.RUN_BEFORE_LAUNCH)
        world.launcher.start(folder)
        crash.reach(Point.RUN_AFTER_LAUNCH)
    if not _wanted(world, ticket):
        # Whoever stopped it did so before its runner could hear of it, or died before telling.
        launch.stop(folder, grace=0)
    return launch.wait(folder)


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
    folder = run_dir(world, this_run)
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    text = briefing(ticket, shop.config)
    files.write_whole(given / "briefing.md", text, mode=0o644)
    write_spec(folder, _spec(world, shop, ticket, this_run, tree, given))


def _spec(world: World, shop: Workshop, ticket: Ticket, this_run: Run, tree: Path, given: Path) -> Spec:
    state = shop.agents / worktree_name(ticket.id)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    agent = program(world, shop.config, ticket.wish.command, ticket.wish.driver)
    identity = {
        "LEGION_TICKET": str(ticket.id),
        "LEGION_ATTEMPT": str(ticket.attempt),
        "LEGION_STATE": str(state),
        "LEGION_URL": world.url,
    }
    env = places.environment(world, identity)
    return Spec(
        run=this_run.name,
        program=briefed(agent.argv, cwd=tree, env=env, briefing=given / "briefing.md"),
        timeout=agent.timeout,
        sandbox=places.sandbox(world, shop, writable=(tree, state), readable=(given, *_own_file(agent))),
    )


def _own_file(agent: Program) -> tuple[Path, ...]:
    """The agent program itself, which may lie where no toolchain is."""
    found = shutil.which(agent.argv[0])
    return (Path(found).absolute(), Path(found).resolve()) if found else ()


@dataclass(frozen=True)
class Program:
    """How the agent is started, and how long it may take."""

    argv: tuple[str, ...]
    timeout: float


def program(world: World, config: ProjectConfig, command: str, driver: str) -> Program:
    """The ticket's own command, else the driver it names, else the default one."""
    if command:
        return Program(("sh", "-c", command), config.agents.timeout)
    try:
        chosen = world.user.driver(driver, config.agents.driver)
    except NotFound as missing:
        raise NoProgram(f"{missing.message.rstrip('.')}, or pass --command to dispatch.") from missing
    return Program(chosen.argv, chosen.timeout or config.agents.timeout)


def _outcome(ended: Ended | Lost) -> tuple[Outcome, str]:
    """The runner's words in ours. What counts is decided by `_judge`."""
    if isinstance(ended, Lost):
        return Outcome.LOST, "its runner was killed"
    result = ended.result
    said = result.message.rstrip(".")
    match result.outcome:
        case Ending.EXITED:
            return (Outcome.FINISHED if result.exit_code == 0 else Outcome.FAILED), f"exit code {result.exit_code}"
        case Ending.TIMED_OUT:
            return Outcome.TIMED_OUT, said
        case Ending.STOPPED:
            return Outcome.STOPPED, said
        case Ending.FAILED_TO_START:
            return Outcome.NOT_STARTED, said


def _judge(
    world: World, shop: Workshop, ticket: Ticket, this_run: Run, outcome: Outcome, detail: str, saved: Saved
) -> Step:
    """What becomes of the ticket. The program's word counts for nothing; what lies in the tree does."""
    match outcome:
        case Outcome.LOST if this_run.generation >= MOST_GENERATIONS:
            return Fail(f"its runner was killed {this_run.generation} times: see `legion log {ticket.id}`")
        case Outcome.LOST | Outcome.STOPPED:
            return Resume(f"{detail}; the attempt goes on with what it left")
        case Outcome.NOT_STARTED:
            return Fail(detail)
        case Outcome.FAILED | Outcome.TIMED_OUT:
            tail = _tail(RunFolder(run_dir(world, this_run)).output)
            return next_try(ticket, f"the agent's program failed ({detail})", feedback.program_failed(detail, tail))
        case Outcome.FINISHED:
            return _judge_change(shop, ticket, saved)


def _judge_change(shop: Workshop, ticket: Ticket, saved: Saved) -> Step:
    assert ticket.base is not None, "a started ticket stands on a base"
    if saved.tree == shop.hub.tree_of(ticket.base):
        return next_try(ticket, "it changed nothing", feedback.changed_nothing())
    changed = [change.path for change in shop.hub.changed_files(ticket.base, saved.commit)]
    protected = undeclared(changed, shop.config.protect.paths, ticket.wish.files)
    if protected:
        shown = ", ".join(protected[:3])
        return next_try(ticket, f"it changed protected files ({shown})", feedback.touched_protected(protected))
    if _PLANTED_MARKER.search(shop.hub.diff(ticket.base, saved.commit)):
        return next_try(ticket, "it left conflict markers in the tree", feedback.left_markers(changed))
    return Propose(Change(base=ticket.base, commit=saved.commit))


def _conclude(
    world: World, claim: Claim, this_run: Run, outcome: Outcome, detail: str, saved: Saved | None, step: Step
) -> None:
    """Run, ticket and claim change together. A person who stopped or parked the ticket meanwhile is not overruled."""
    if saved is not None and saved.nested:
        detail = f"{detail}; not part of the change: nested repositories {', '.join(saved.nested)}"
    crash.reach(Point.RUN_BEFORE_CONCLUDE)
    with world.store.write() as tx:
        if not jobs.still_mine(tx, claim):
            return
        runs.end(tx, this_run.id, outcome, detail, saved.commit if saved else None)
        ticket = tickets.get(tx, claim.subject)
        if ticket.state is State.WORKING:
            tickets.move(tx, ticket.id, step)
            if isinstance(step, Propose) and not ticket.wish.proofs:
                tickets.move(tx, ticket.id, Prove())
        jobs.finish(tx, claim)
    crash.reach(Point.RUN_AFTER_CONCLUDE)


def _finish_claim(world: World, claim: Claim) -> None:
    with world.store.write() as tx:
        jobs.finish(tx, claim)


def _tail(output: Path, most: int = 4000) -> str:
    try:
        with output.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - most))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
