"""The person's own commits: noticed here, absorbed through the merge queue like any change, never rewritten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from legion.domain.events import Kind
from legion.domain.projects import Project
from legion.git.errors import BranchGone
from legion.git.inspect import loose_tip
from legion.jobs.world import Workshop, World
from legion.store import projects


def look(world: World, shop: Workshop) -> Project:
    """Bring the person's branch into the hub and remember its tip. A deleted branch is simply not looked at."""
    common_dir, branch = Path(shop.project.common_dir), shop.project.branch
    if shop.project.person_tip is not None and loose_tip(common_dir, branch) == shop.project.person_tip:
        return shop.project
    try:
        tip = shop.hub.fetch_person(common_dir, branch)
    except BranchGone:
        return shop.project
    target = shop.target
    absorbed = tip if shop.hub.is_ancestor(tip, target) else None
    with world.store.write() as tx:
        project = projects.get(tx, shop.project.id)
        if tip == project.person_tip and absorbed in (None, project.person_absorbed):
            return project
        seen = replace(project, person_tip=tip, person_absorbed=absorbed or project.person_absorbed)
        return projects.save(tx, seen, Kind.PERSON_SEEN, {"tip": tip})
