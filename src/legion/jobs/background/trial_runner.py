"""Runs trials of checks in the background: after `legion init`, and after each change of what they depend on.

Each project has a thread of its own while its trial runs: one that fails or hangs holds up no other. A daemon that ends
before the result starts again with it.
"""

from __future__ import annotations

import logging
import threading
import time

from legion.domain.errors import BadInput, LegionError
from legion.domain.projects import Project
from legion.jobs.checks import sight, trial
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.command import Cancelled, CancelToken, cancel_all
from legion.store.board import projects

log = logging.getLogger(__name__)

_PAUSE = 600.0
"""Seconds between two looks without an event."""
_FIRST_REST, _LONGEST_REST = 5.0, 600.0
"""Seconds before a trial that could not run is tried again; they double with each failure in a row."""
_AT_ONCE = 2


class TrialRunner(BackgroundLoop):
    context: Context

    def __init__(self, context: Context) -> None:
        super().__init__(context, "trials")
        self._cancel = CancelToken()
        self._room = threading.Semaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._rests: dict[int, tuple[float, float]] = {}
        """By project whose trial could not run: how long it rests, and until when."""

    def stop(self) -> None:
        self._stopping.set()
        cancel_all([self._cancel])
        super().stop()

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            for project in self.due():
                with self._lock:
                    self._running.add(project.id)
                threading.Thread(target=self._try, args=(project,), name="trial", daemon=True).start()
            with self._lock:
                rests = [until - time.monotonic() for _, until in self._rests.values()]
            self._wake.wait(min([_PAUSE, *(max(left, 0.1) for left in rests)]))

    def due(self) -> list[ProjectContext]:
        """Projects whose checks are to be tried now."""
        if not self.context.user.protection.trial:
            return []
        with self.context.store.read() as tx:
            trusted = [
                one for one in projects.all(tx) if one.target and projects.is_trusted(tx, one.id, one.config_hash)
            ]
        known = [self._context_of(one) for one in trusted if self._may_run(one.id)]
        with self.context.store.read() as tx:
            return [one for one in known if one is not None and sight.is_due(self.context, tx, one)]

    def _may_run(self, project: int) -> bool:
        with self._lock:
            _, until = self._rests.get(project, (0.0, 0.0))
            return project not in self._running and time.monotonic() >= until

    def _context_of(self, record: Project) -> ProjectContext | None:
        """None where it cannot be tried: `legion status` reports a legion.toml that cannot be parsed."""
        try:
            project = self.context.project_of(record)
            return project if project.hub.target() is not None else None
        except (BadInput, LegionError, OSError):
            return None

    def _try(self, project: ProjectContext) -> None:
        try:
            with self._room:
                trial.run(self.context, project, self._cancel)
            rest = 0.0
        except Cancelled:
            return
        except Exception as trouble:  # what one project brings must not cost the others
            expected = isinstance(trouble, LegionError | OSError)
            log.warning("trial of the checks of %s could not run, will retry: %s", project.name, trouble)
            if not expected:
                log.error("unexpected", exc_info=trouble)
            rest = min(2 * self._rests.get(project.id, (_FIRST_REST / 2, 0.0))[0], _LONGEST_REST)
        with self._lock:
            self._running.discard(project.id)
            if rest:
                self._rests[project.id] = (rest, time.monotonic() + rest)
            else:
                self._rests.pop(project.id, None)
        self._wake.set()
