"""Polls the person's branch for new commits while tickets are open.

Reads a few file times; git is asked only if one of them changed.
"""

from __future__ import annotations

import logging
from pathlib import Path

from legion.domain.errors import LegionError
from legion.domain.projects import Project
from legion.jobs.context import Context
from legion.jobs.landing import upstream
from legion.jobs.loop import BackgroundLoop
from legion.store.board import projects, tickets

log = logging.getLogger(__name__)

_EVERY = 2.0

Times = tuple[int | None, ...]


class BranchWatcher(BackgroundLoop):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "branch-watcher")
        self._seen: dict[int, Times] = {}

    def _repeat(self) -> None:
        while not self._stopping.wait(_EVERY):
            try:
                for project in self._with_tickets():
                    self._check(project)
            except LegionError as trouble:
                log.warning("the check for new commits failed, will retry: %s", trouble)

    def _with_tickets(self) -> list[Project]:
        with self.context.store.read() as tx:
            busy = {ticket.project for ticket in tickets.live(tx)}
            return [project for project in projects.all(tx) if project.id in busy]

    def _check(self, project: Project) -> None:
        try:
            times = _times(project)
            if self._seen.get(project.id) != times:
                upstream.fetch(self.context, self.context.project_of(project))
                self._seen[project.id] = times
        except (LegionError, OSError) as trouble:
            log.warning("the branch %s of %s could not be read: %s", project.branch, project.name, trouble)


def _times(project: Project) -> Times:
    """The times of the files in which git stores branches; None for a missing one."""
    common = Path(project.common_dir)
    places = (common / "refs/heads" / project.branch, common / "packed-refs", common / "reftable/tables.list")
    return tuple(place.stat().st_mtime_ns if place.exists() else None for place in places)
