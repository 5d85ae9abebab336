"""Fetches the person's own commits into the hub. The merge queue absorbs them like any change, never rewritten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from legion.domain.events import EventKind
from legion.domain.projects import Project
from legion.git.core.errors import BranchGone, RepositoryGone
from legion.git.person.inspect import loose_tip
from legion.jobs.context import Context, ProjectContext
from legion.store.board import projects


def fetch(context: Context, project_context: ProjectContext) -> Project:
    """Fetch the person's branch and store its tip. A branch or repository that is gone is skipped."""
    common_dir, branch = Path(project_context.project.common_dir), project_context.project.branch
    if (
        project_context.project.person_tip is not None
        and loose_tip(common_dir, branch) == project_context.project.person_tip
    ):
        return project_context.project
    try:
        tip = project_context.hub.fetch_person(common_dir, branch)
    except (BranchGone, RepositoryGone):
        return project_context.project
    left = _left(project_context, tip)
    target = project_context.target
    inside = project_context.hub.is_ancestor(tip, target)
    with context.store.write() as tx:
        project = projects.get(tx, project_context.project.id)
        # A person who had all of the target and then reset their branch wants the target reset, too.
        went_back = inside and tip != target == project.person_absorbed
        absorbed = tip if inside and not went_back else None
        if tip == project.person_tip and absorbed in (None, project.person_absorbed):
            return project
        seen = replace(project, person_tip=tip, person_absorbed=absorbed or project.person_absorbed)
        return projects.save(tx, seen, EventKind.PERSON_SEEN, {"tip": tip, **({"left": left} if left else {})})


def _left(project_context: ProjectContext, tip: str) -> str | None:
    """The former tip, if a rebase or a reset dropped it from the branch. The hub keeps it."""
    before = project_context.project.person_tip
    if before is None or before == tip or project_context.hub.is_ancestor(before, tip):
        return None
    project_context.hub.keep(f"before/{before}", before)
    return before
