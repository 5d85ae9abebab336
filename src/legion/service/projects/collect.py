"""Brings landed work into the person's branch. Nothing else writes to their repository."""

from __future__ import annotations

from pathlib import Path

from legion.domain.errors import NotAllowed, Retryable, StateConflict
from legion.domain.events import EventKind
from legion.git.person.collect import collect as fast_forward
from legion.jobs.context import Context
from legion.jobs.landing import upstream
from legion.service.projects import registry as project_cases
from legion.store import events
from legion.wire.projects import CollectResult


def collect(context: Context, cwd: str) -> CollectResult:
    project = project_cases.find(context, cwd)
    project_context = context.workshop_of(project)
    project = upstream.look(context, project_context)
    if project.person_refused is not None and project.person_refused == project.person_tip:
        with context.store.read() as tx:
            refused = events.latest(tx, project.id, EventKind.NOT_ABSORBED)
        why, remedy = (refused.data["why"], refused.data["remedy"]) if refused else ("", "")
        raise StateConflict(f"Your branch {project.branch} cannot be fast-forwarded, because {why}: {remedy}.")
    if project.person_waiting and not project_cases.is_trusted(context, project):
        raise NotAllowed(
            "Your own commits cannot be checked before you trust legion.toml: read it, run `legion trust`."
        )
    if project.person_waiting:
        raise Retryable(
            f"Your own commits on {project.branch} are being checked together with the landed work: "
            "try again in a moment, or run `legion collect --wait`."
        )
    done = fast_forward(Path(project.root), project.branch, project_context.hub, project.target)
    commits = len(project_context.hub.commits_between(done.old, done.new)) if done.old != done.new else 0
    upstream.look(context, project_context)
    with context.store.write() as tx:
        tx.record(EventKind.COLLECTED, project=project.id, data={"old": done.old, "new": done.new})
    message = (
        f"{project.branch} has {commits} new commit{'s' if commits != 1 else ''}."
        if commits
        else f"{project.branch} already contains all landed work."
    )
    return CollectResult(
        branch=project.branch, old=done.old, new=done.new, commits=commits, files=done.files, message=message
    )
