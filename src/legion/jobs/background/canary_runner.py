"""Runs the canary of a project in the background: after `legion init`, and after each change of its checks.

It waits until nothing of the project is checked or lands. A daemon that ends before the result starts again with it.
"""

from __future__ import annotations

import logging

from legion.domain.errors import BadInput, LegionError
from legion.domain.projects import Project
from legion.domain.tickets.ticket import State
from legion.jobs.checks import canary
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop
from legion.jobs.workspace.cancellation import Cancelled, CancelToken, cancel_all
from legion.store.board import projects, tickets

log = logging.getLogger(__name__)

_QUIET = 2.0
"""Seconds after the last event: a person who starts a project often dispatches at once."""
_PAUSE = 600.0
"""Seconds between two tries where one failed, and between two looks without an event."""


class CanaryRunner(BackgroundLoop):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "canary")
        self._tried: dict[int, tuple[str, str]] = {}
        """By project: the hash of the legion.toml and the target that were considered. Most events change neither."""
        self._cancel = CancelToken()

    def stop(self) -> None:
        self._stopping.set()
        cancel_all([self._cancel])
        super().stop()

    def _repeat(self) -> None:
        pause = _QUIET
        while not self._stopping.wait(pause):
            self._wake.clear()
            pause = _QUIET
            try:
                self.run_due()
            except Cancelled:
                return
            except (LegionError, OSError) as trouble:
                log.warning("the canary could not run, will retry: %s", trouble)
                pause = _PAUSE
                continue
            self._wake.wait(_PAUSE)

    def run_due(self) -> None:
        """Run the canary of every project whose checks were never tried and of which nothing is checked now."""
        if not self.context.user.protection.canary:
            return
        for record in self._untried():
            try:
                project = self.context.project_of(record)
            except BadInput:
                # `legion status` reports it.
                continue
            if canary.is_due(project):
                canary.run(self.context, project, self._cancel)
            self._tried[record.id] = (record.config_hash, record.target)

    def _untried(self) -> list[Project]:
        with self.context.store.read() as tx:
            new = [
                project
                for project in projects.all(tx)
                if self._tried.get(project.id) != (project.config_hash, project.target)
                and project.target
                and projects.is_trusted(tx, project.id, project.config_hash)
            ]
            if not new:
                return []
            busy = {one.project for one in tickets.live(tx) if one.state in (State.CHECKING, State.LANDING)}
        return [project for project in new if project.id not in busy]
