"""Collects the facts that a draft is checked against: files of the target, checks, tickets, the program of agents."""

from __future__ import annotations

import functools
import shlex
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from legion.domain.checks import Check
from legion.domain.errors import LegionError
from legion.domain.plans.checks import BoardTicket, PlanFacts, ProofTrial, commands, words_of
from legion.domain.plans.draft import PlanDraft
from legion.domain.plans.plan import GoalPlan, PlanEstimate, PlanSource, estimate
from legion.domain.review.path_patterns import matches
from legion.git.hub.repository import Hub
from legion.jobs.agent import spec, teams
from legion.jobs.board import Board
from legion.jobs.checks import execution
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import sandbox
from legion.jobs.workspace.command import CancelToken, NotTrusted
from legion.jobs.workspace.setup import SetupFailed
from legion.store.board import goals, tickets
from legion.store.database.transactions import ReadTransaction

_WILD = ("*", "?")


_MOST_CHANGES = 60
_LONGEST_SAID = 600
_LEAST = 10.0
"""Seconds that a proof may take where as many are left, whatever follows it."""


def checker(
    context: Context, project: ProjectContext, plan: GoalPlan, draft: PlanDraft
) -> Callable[[ReadTransaction, GoalPlan], PlanFacts]:
    """Reads git and settings and tries the draft's proofs now; reads the board in the transaction that stores the
    result of the check."""
    exists = file_finder(project, project.target)
    why_not = cannot_start(context, project, plan.team)
    limits = project.config.plans
    with context.store.read() as tx:
        proofs = commands(draft, goals.dispatched(tx, plan.id))
    trials = tried(context, project, plan, proofs)
    changed = _changed(context, project)
    checks = tuple(check.name for check in project.config.checks)

    def facts(tx: ReadTransaction, current: GoalPlan) -> PlanFacts:
        live, edges = tickets.live(tx, project=current.project), tickets.edges(tx, current.project)
        dispatched = goals.dispatched(tx, current.id)
        replaced = {current.about, *draft.drops, *dispatched.values()}
        return PlanFacts(
            exists=exists,
            checks=checks,
            tickets=edges.keys(),
            approved=dispatched.keys(),
            # A ticket on the board declares the files that it makes, too.
            board=[
                BoardTicket(number=one.id, title=one.spec.title, files={*one.spec.files, *changed.get(one.id, ())})
                for one in live
                if one.id not in replaced and not one.spec.checkpoint
            ],
            before=edges,
            same_goal=_same_goal(tx, current, {one.spec.epic for one in live}),
            cannot_start=why_not,
            trials=trials,
            most_files=limits.most_files,
            most_lines=limits.most_lines,
        )

    return facts


def _changed(context: Board, project: ProjectContext) -> dict[int, list[str]]:
    """What open tickets have changed so far."""
    with context.store.read() as tx:
        found = {one.id: one.change for one in tickets.live(tx, project=project.id) if one.change is not None}
    return {
        number: [file.path for file in project.hub.changed_files(change.base, change.commit)]
        for number, change in list(found.items())[:_MOST_CHANGES]
    }


def _same_goal(tx: ReadTransaction, plan: GoalPlan, epics: Collection[str]) -> str:
    """An older plan with this goal that waits, or whose epic has open tickets."""
    if plan.source is not PlanSource.GOAL:
        return ""
    wanted = words_of(plan.goal)
    older = (one for one in goals.of_project(tx, plan.project) if one.id < plan.id and words_of(one.goal) == wanted)
    return next((one.name for one in older if one.open or (one.epic or one.name) in epics), "")


def tried(context: Context, project: ProjectContext, plan: GoalPlan, proofs: Collection[str]) -> dict[str, ProofTrial]:
    """What each proof says on the target, where those of a draft must fail: nothing of the plan is done there yet.

    Only in a sandbox, since no person has approved these commands. One that was not tried says why.
    """
    tree, known = project.hub.tree_of(project.target), {check.command for check in project.config.checks}
    wanted = [one for one in proofs if one not in known]
    before = {one: plan.trials[one] for one in wanted if one in plan.trials and plan.trials[one].tree == tree}
    found = {command: one for command, one in before.items() if one.exit_code is not None}
    if (left := [one for one in wanted if one not in found]) and not project.config.plans.proof_seconds:
        why = "plans.proof_seconds is 0"
    elif left and sandbox.sandbox(context, project, writable=()) is None:
        why = "there is no sandbox"
    else:
        why = _try_each(context, project, left, found, tree) if left else ""
    return {one: found.get(one) or ProofTrial(exit_code=None, said=why, tree=tree) for one in wanted}


def _try_each(
    context: Context, project: ProjectContext, todo: Sequence[str], found: dict[str, ProofTrial], tree: str
) -> str:
    """Adds to `found`; returns why the others were not tried."""
    try:
        with execution.tree_of(context, project, project.target, CancelToken()) as ready:
            # From here on: [setup] has its own time.
            until = time.monotonic() + project.config.plans.proof_seconds
            for place, command in enumerate(todo):
                if (left := until - time.monotonic()) <= 0:
                    break
                timeout = max(left / (len(todo) - place), min(left, _LEAST))
                # The shell itself says whether it is a command: it reads it, and runs nothing.
                asks = f"sh -n -c {shlex.quote(command)} || exit 126; exec sh -c {shlex.quote(command)}"
                check = Check(name="of a plan", command=asks, timeout=timeout)
                ended = execution.try_in(context, project, ready, check, why="proof")
                late = f"it did not end in {timeout:.0f} s"
                said = late if ended.exit_code is None else ended.tail[-_LONGEST_SAID:]
                found[command] = ProofTrial(exit_code=ended.exit_code, said=said, tree=tree)
    except (SetupFailed, NotTrusted) as wrong:
        return wrong.message
    return f"the {project.config.plans.proof_seconds} s for proofs were over"


def estimated(project: ProjectContext, tx: ReadTransaction, plan: GoalPlan) -> PlanEstimate:
    """Of all tickets of its draft; unknown for a plan without one."""
    if plan.draft is None:
        return PlanEstimate()
    return estimate(
        plan.draft,
        goals.landed(tx, plan.project),
        goals.past_estimates(tx, plan.project),
        parallel=project.config.agents.parallel,
    )


def file_finder(project: ProjectContext, commit: str) -> Callable[[str], bool]:
    """Whether a commit has a file or folder of that path or pattern. Paths are untrusted and never reach git."""

    there = all_files(project.hub.path, commit)

    def exists(path: str) -> bool:
        if any(letter in path for letter in _WILD):
            return any(matches(file, (path,)) for file in there)
        folder = f"{path.removesuffix('/')}/"
        return path in there or any(file.startswith(folder) for file in there)

    return exists


@functools.lru_cache(maxsize=8)
def all_files(git_dir: Path, commit: str) -> frozenset[str]:
    return frozenset(Hub(git_dir).files_in(commit, "."))


def cannot_start(context: Board, project: ProjectContext, team: str) -> str:
    """What keeps every ticket of a plan from running; empty where nothing does."""
    try:
        crew = teams.crew(context, project, team)
        spec.choose_program(context, project.config, "", crew.builder.role.driver)
    except LegionError as missing:
        return missing.message.rstrip(".")
    return ""
