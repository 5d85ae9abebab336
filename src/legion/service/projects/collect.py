"""Brings landed work into the person's branch. Nothing else writes to their repository."""

from __future__ import annotations

from pathlib import Path

from legion.domain.errors import NotAllowed, Retryable, StateConflict
from legion.domain.events import EventKind
from legion.domain.projects import Project
from legion.domain.text import count
from legion.git.person.collect import CollectedRange
from legion.git.person.collect import collect as fast_forward
from legion.jobs.board import Board
from legion.jobs.checks import red_checks
from legion.jobs.landing import branch_questions, target
from legion.jobs.trees import ProjectContext, Trees
from legion.service.projects import registry
from legion.store import events
from legion.wire.projects import CollectResult


def collect(context: Trees, cwd: str) -> CollectResult:
    record = _ready(context, cwd)
    project = context.project_of(record)
    done = fast_forward(Path(record.root), record.branch, project.hub, record.target)
    target.fetch(context, project)
    with context.store.write() as tx:
        tx.record(EventKind.COLLECTED, project=record.id, data={"old": done.old, "new": done.new})
    return _result(record, project, done, "has")


def preview(context: Trees, cwd: str) -> CollectResult:
    """What `collect` would bring, or its refusal. The person's repository is only read."""
    record = _ready(context, cwd)
    project = context.project_of(record)
    found = fast_forward(Path(record.root), record.branch, project.hub, record.target, dry_run=True)
    return _result(record, project, found, "would get")


def ahead(context: Trees, project: Project) -> int:
    """The number of landed commits that the person's branch lacks."""
    if not project.person_absorbed or not project.target or project.person_absorbed == project.target:
        return 0
    hub = context.hub(project.id)
    return len(hub.commits_between(project.person_tip or project.person_absorbed, project.target))


def _ready(context: Trees, cwd: str) -> Project:
    """The project, where the person's own commits do not stand in the way."""
    project = registry.find(context, cwd)
    project = target.fetch(context, context.project_of(project))
    _refuse_dropped(context, project)
    if project.person_refused is not None and project.person_refused == project.person_tip:
        with context.store.read() as tx:
            refused = events.latest(tx, project.id, EventKind.NOT_ABSORBED)
            red = red_checks.by_ids(tx, refused.data.get("receipts") if refused else None)
        why, remedy = (refused.data["why"], refused.data["remedy"]) if refused else ("", "")
        failed = "".join(f" {sentence}." for sentence in red_checks.sentences(context, red))
        raise StateConflict(f"Your branch {project.branch} cannot be fast-forwarded, because {why}: {remedy}.{failed}")
    refuse_pending(context, project)
    return project


def refuse_pending(context: Board, project: Project) -> None:
    """Raise Retryable while the person's own commits are on their way into the target."""
    if project.upstream_pending and not registry.is_trusted(context, project):
        raise NotAllowed(
            "Your own commits cannot be checked before you trust legion.toml: read it, run `legion trust`."
        )
    if project.upstream_pending:
        raise Retryable(
            f"Your own commits on {project.branch} are being checked together with the landed work: "
            "try again in a moment, or run `legion collect --wait`."
        )


def _refuse_dropped(context: Board, project: Project) -> None:
    """Collecting would bring back what the person dropped from the branch: they decide about that first."""
    with context.store.read() as tx:
        asked = branch_questions.about_rewritten(tx, project.id)
    if asked is not None:
        raise StateConflict(
            f"{project.branch} was rewritten, and landed work stands on what it dropped: `legion answer {asked.id} "
            f"{'|'.join(asked.choices)}` says what shall happen (`legion inbox` explains it), then collect again."
        )


def _result(record: Project, project: ProjectContext, moved: CollectedRange, verb: str) -> CollectResult:
    commits = len(project.hub.commits_between(moved.old, moved.new)) if moved.old != moved.new else 0
    message = (
        f"{record.branch} {verb} {count(commits, 'new commit')}."
        if commits
        else f"{record.branch} already contains all landed work."
    )
    return CollectResult(
        branch=record.branch, old=moved.old, new=moved.new, commits=commits, files=moved.files, message=message
    )
