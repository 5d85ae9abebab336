"""Polls the person's branch for new commits while tickets are open.

Reads a few file times; git is asked only if one of them changed.
"""

from __future__ import annotations

import functools
from pathlib import Path

from legion.domain.projects import Project
from legion.jobs.context import Context
from legion.jobs.landing import upstream
from legion.jobs.loop import BackgroundLoop
from legion.store.board import projects, tickets

_EVERY = 2.0

Times = tuple[int | None, ...]


class BranchWatcher(BackgroundLoop):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "branch-watcher")
        self._seen: dict[int, Times] = {}

    def _repeat(self) -> None:
        while not self._stopping.wait(_EVERY):
            self._attempt("the check for new commits", self._check_all)

    def _check_all(self) -> None:
        for project in self._with_tickets():
            what = f"reading the branch {project.branch} of {project.name}"
            self._attempt(what, functools.partial(self._check, project))

    def _with_tickets(self) -> list[Project]:
        with self.context.store.read() as tx:
            busy = {ticket.project for ticket in tickets.live(tx)}
            return [project for project in projects.all(tx) if project.id in busy]

    def _check(self, project: Project) -> None:
        times = _times(project)
        if self._seen.get(project.id) != times:
            upstream.fetch(self.context, self.context.project_of(project))
            self._seen[project.id] = times


def _times(project: Project) -> Times:
    """The times of the files in which git stores branches; None for a missing one."""
    common = Path(project.common_dir)
    places = (common / "refs/heads" / project.branch, common / "packed-refs", common / "reftable/tables.list")
    return tuple(place.stat().st_mtime_ns if place.exists() else None for place in places)
