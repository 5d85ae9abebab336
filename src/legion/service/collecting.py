"""Bringing landed work into the person's own branch: the only thing that writes to their repository."""

from __future__ import annotations

from pathlib import Path

from legion.domain.errors import Conflict, NotAllowed, TryAgain
from legion.domain.events import Kind
from legion.git.collect import collect as fast_forward
from legion.jobs import person
from legion.jobs.world import World
from legion.service import projects as project_cases
from legion.store import events
from legion.wire.projects import Collected


def collect(world: World, cwd: str) -> Collected:
    project = project_cases.find(world, cwd)
    shop = world.workshop_of(project)
    project = person.look(world, shop)
    if project.person_refused is not None and project.person_refused == project.person_tip:
        with world.store.read() as tx:
            refused = events.latest(tx, project.id, Kind.NOT_ABSORBED)
        why, remedy = (refused.data["why"], refused.data["remedy"]) if refused else ("", "")
        raise Conflict(f"Your branch {project.branch} cannot be fast-forwarded, because {why}: {remedy}.")
    if project.person_waiting and not project_cases.is_trusted(world, project):
        raise NotAllowed(
            "Your own commits cannot be checked before you trust legion.toml: read it, run `legion trust`."
        )
    if project.person_waiting:
        raise TryAgain(
            f"Your own commits on {project.branch} are being checked together with the landed work: "
            "try again in a moment, or run `legion collect --wait`."
        )
    done = fast_forward(Path(project.root), project.branch, shop.hub, project.target)
    commits = len(shop.hub.commits_between(done.old, done.new)) if done.old != done.new else 0
    person.look(world, shop)
    with world.store.write() as tx:
        tx.record(Kind.COLLECTED, project=project.id, data={"old": done.old, "new": done.new})
    said = (
        f"{project.branch} has {commits} new commit{'s' if commits != 1 else ''}."
        if commits
        else f"{project.branch} holds all landed work already."
    )
    return Collected(branch=project.branch, old=done.old, new=done.new, commits=commits, files=done.files, message=said)
