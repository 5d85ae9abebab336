"""Numbers of workers and attempts that hold at once, without a commit."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.errors import BadInput
from legion.domain.events import EventKind
from legion.domain.projects import Project
from legion.domain.tickets.ticket import State
from legion.jobs.board import Board
from legion.jobs.trees import settings_of
from legion.service.projects import registry
from legion.store.board import projects, tickets
from legion.wire.projects import Numbers, SetNumbers

_MOST_WORKERS, _MOST_RETRIES = 64, 20
_AT_WORK = (State.WORKING, State.REVIEWING)


def numbers(context: Board, cwd: str) -> Numbers:
    return _shown(context, registry.find(context, cwd))


def set_numbers(context: Board, wanted: SetNumbers) -> Numbers:
    """Tickets that were dispatched keep their number of attempts; agents at work are not stopped."""
    for name, value, most in (("workers", wanted.workers, _MOST_WORKERS), ("retries", wanted.retries, _MOST_RETRIES)):
        if value is not None and not 0 <= value <= most:
            raise BadInput(f"`legion {name}` takes a number from 1 to {most}; 0 returns to that of legion.toml.")
    found = registry.find(context, wanted.cwd)
    with context.store.write() as tx:
        project = projects.get(tx, found.id)
        if wanted.workers is not None:
            project = replace(project, workers=wanted.workers or None)
        if wanted.retries is not None:
            project = replace(project, retries=wanted.retries or None)
        saved = projects.save(
            tx, project, EventKind.PROJECT_NUMBERS, {"workers": project.workers, "retries": project.retries}
        )
    return _shown(context, saved)


def _shown(context: Board, project: Project) -> Numbers:
    settings = settings_of(project).agents
    with context.store.read() as tx:
        at_work = sum(1 for one in tickets.live(tx, project=project.id) if one.state in _AT_WORK)
    return Numbers(
        workers=settings.parallel,
        workers_set=project.workers is not None,
        retries=settings.attempts,
        retries_set=project.retries is not None,
        at_work=at_work,
        message=f"{settings.parallel} agents work at once{_source(project.workers)}; a ticket is tried"
        f" {settings.attempts} times{_source(project.retries)}.",
    )


def _source(value: int | None) -> str:
    return " (legion.toml)" if value is None else " (set by you)"
