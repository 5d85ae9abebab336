"""Fetches the targets of projects as they move, so that a run of them finds its code and a warm worktree here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from legion.domain.errors import LegionError
from legion.machine.mirror import Mirrors
from legion.system import loops

log = logging.getLogger("legion")


class TargetFollower:
    """A thread of the worker. `fetched` is called after each target that arrived."""

    def __init__(self, mirrors: Mirrors, fetched: Callable[[], None]) -> None:
        self._mirrors = mirrors
        self._fetched = fetched
        self._wanted: dict[int, str] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = loops.lasting(
            self._follow, name="targets", stopped=lambda pause: self._wake.wait(pause) and self._stopping
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def moved(self, targets: Mapping[int, str]) -> None:
        with self._lock:
            self._wanted.update(targets)
        self._wake.set()

    def _follow(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                return
            with self._lock:
                wanted, self._wanted = self._wanted, {}
            for project, commit in wanted.items():
                try:
                    self._mirrors.follow(project, commit)
                except (LegionError, OSError) as trouble:
                    # The next job of the project fetches it.
                    log.info("the target of project %d is not here yet: %s", project, trouble)
            self._fetched()
