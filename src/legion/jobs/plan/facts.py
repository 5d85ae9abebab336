"""Collects the facts that a draft is checked against: files of the target, checks, tickets, the program of agents."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from legion.domain.errors import LegionError
from legion.domain.plans.checks import PlanFacts
from legion.domain.plans.plan import GoalPlan, PlanEstimate, estimate
from legion.domain.review.path_patterns import matches
from legion.git.hub.repository import Hub
from legion.jobs.agent import spec, teams
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.store.board import goals, tickets
from legion.store.database.transactions import ReadTransaction

_WILD = ("*", "?")


def checker(
    context: Board, project: ProjectContext, plan: GoalPlan
) -> Callable[[ReadTransaction, GoalPlan], PlanFacts]:
    """Reads git and settings now, and the board in the transaction that stores the result of the check."""
    exists = file_finder(project, project.target)
    why_not = cannot_start(context, project, plan.team)
    limits = project.config.plans
    tree = project.hub.tree_of(project.target)
    checks = tuple(check.name for check in project.config.checks)

    def facts(tx: ReadTransaction, current: GoalPlan) -> PlanFacts:
        live = tickets.live(tx, project=current.project)
        return PlanFacts(
            exists=exists,
            checks=checks,
            tickets=tickets.edges(tx, current.project).keys(),
            approved=goals.dispatched(tx, current.id).keys(),
            # A ticket on the board declares the files that it makes, too.
            made=tuple(path for ticket in live for path in ticket.spec.files),
            cannot_start=why_not,
            proof_of=lambda command: context.live.proof_trials.get((tree, command)),
            most_files=limits.most_files,
            most_lines=limits.most_lines,
        )

    return facts


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
