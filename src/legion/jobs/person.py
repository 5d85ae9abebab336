"""The person's own commits: noticed here, absorbed through the merge queue like any change, never rewritten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from legion.domain.events import Kind
from legion.domain.projects import Project
from legion.git.errors import BranchGone, RepositoryGone
from legion.git.inspect import loose_tip
from legion.jobs.world import Workshop, World
from legion.store import projects


def look(world: World, shop: Workshop) -> Project:
    """Bring the person's branch into the hub and remember its tip. What is gone is simply not looked at."""
    common_dir, branch = Path(shop.project.common_dir), shop.project.branch
    if shop.project.person_tip is not None and loose_tip(common_dir, branch) == shop.project.person_tip:
        return shop.project
    try:
        tip = shop.hub.fetch_person(common_dir, branch)
    except (BranchGone, RepositoryGone):
        return shop.project
    left = _left(shop, tip)
    target = shop.target
    inside = shop.hub.is_ancestor(tip, target)
    with world.store.write() as tx:
        project = projects.get(tx, shop.project.id)
        # Who had all of the target and went back wants it back there, too: that waits like any other commit of theirs.
        went_back = inside and tip != target == project.person_absorbed
        absorbed = tip if inside and not went_back else None
        if tip == project.person_tip and absorbed in (None, project.person_absorbed):
            return project
        seen = replace(project, person_tip=tip, person_absorbed=absorbed or project.person_absorbed)
        return projects.save(tx, seen, Kind.PERSON_SEEN, {"tip": tip, **({"left": left} if left else {})})


def _left(shop: Workshop, tip: str) -> str | None:
    """The commit that was the tip before, where a rebase or a reset left it behind. The hub holds on to it."""
    before = shop.project.person_tip
    if before is None or before == tip or shop.hub.is_ancestor(before, tip):
        return None
    shop.hub.keep(f"before/{before}", before)
    return before
