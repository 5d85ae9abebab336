"""Fetches the person's own commits into the hub. The merge queue absorbs them like any change, never rewritten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from legion.domain.events import EventKind
from legion.domain.landing.destination import LandingTarget
from legion.domain.projects import Project
from legion.git.core.errors import BranchGone, RepositoryGone
from legion.git.hub import remote
from legion.git.person.inspect import loose_tip
from legion.jobs.board import Board
from legion.jobs.landing import branch_questions
from legion.jobs.trees import ProjectContext
from legion.store.board import forges, projects


def fetch(context: Board, project: ProjectContext) -> Project:
    """Fetch the person's branch and store its tip. A branch or repository that is gone is skipped.

    Where work lands at a forge, its branch takes the place of the person's; `jobs/forge` has fetched it.
    """
    if project.config.landing.target is not LandingTarget.LOCAL and (tip := _at_forge(context, project)) is not None:
        return _store(context, project, tip)
    common_dir, branch = Path(project.record.common_dir), project.record.branch
    if project.record.person_tip is not None and loose_tip(common_dir, branch) == project.record.person_tip:
        return project.record
    try:
        tip = project.hub.fetch_person(common_dir, branch)
    except BranchGone:
        branch_questions.ask_gone(context, project.record)
        return project.record
    except RepositoryGone:
        return project.record
    return _store(context, project, tip)


def _at_forge(context: Board, project: ProjectContext) -> str | None:
    with context.store.read() as tx:
        forge = forges.of_project(tx, project.id)
    return None if forge is None else project.hub.resolve(remote.ref_of(forge.branch))


def _store(context: Board, project: ProjectContext, tip: str) -> Project:
    if tip == project.record.person_tip:
        return project.record
    left = _left(project, tip)
    target = project.target
    if left is not None and target != project.record.person_absorbed and project.hub.is_ancestor(left, target):
        branch_questions.ask_rewritten(context, project.record, left)
    inside = project.hub.is_ancestor(tip, target)
    with context.store.write() as tx:
        record = projects.get(tx, project.id)
        # A person who had all of the target and then reset their branch wants the target reset, too.
        went_back = inside and tip != target == record.person_absorbed
        absorbed = tip if inside and not went_back else None
        if tip == record.person_tip and absorbed in (None, record.person_absorbed):
            return record
        seen = replace(record, person_tip=tip, person_absorbed=absorbed or record.person_absorbed)
        return projects.save(tx, seen, EventKind.PERSON_SEEN, {"tip": tip, **({"left": left} if left else {})})


def _left(project: ProjectContext, tip: str) -> str | None:
    """The former tip, if a rebase or a reset dropped it from the branch. The hub keeps it."""
    before = project.record.person_tip
    if before is None or before == tip or project.hub.is_ancestor(before, tip):
        return None
    project.hub.keep(f"before/{before}", before)
    return before
