"""Keeps a machine's disk small: old run folders, worktrees that no run came back to, the trash, crowded mirrors.

The head has everything that is deleted here, and a worktree stays in the trash for a week first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from legion.domain.errors import LegionError
from legion.jobs.context import Context
from legion.machine.work import REPORTED
from legion.store.board import projects
from legion.system import trees

log = logging.getLogger("legion")

_EVERY = 600.0
KEEP_RUNS = 24 * 3600.0
"""Seconds for which the folder of a settled run is kept: the head has all its files."""
KEEP_TREES = 7 * 24 * 3600.0
"""Seconds after which a worktree without a run is thrown into the trash."""


class MachineHousekeeper:
    """A thread of the worker. `busy` are the seats that runs of this machine have now."""

    def __init__(self, context: Context, busy: Callable[[], Collection[str]]) -> None:
        self._context = context
        self._busy = busy
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="housekeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _watch(self) -> None:
        while not self._stopping.wait(_EVERY):
            try:
                self.tidy(time.time())
            except (LegionError, OSError) as trouble:
                log.warning("housekeeping failed, will retry: %s", trouble)

    def tidy(self, now: float) -> None:
        for mark in self._context.data.runs.glob(f"*/{REPORTED}"):
            if now - mark.stat().st_mtime > KEEP_RUNS:
                trees.remove(mark.parent)
        with self._context.store.read() as tx:
            known = projects.all(tx)
        for record in known:
            project = self._context.project_of(record)
            busy = set(self._busy())
            for name in project.worktrees.names():
                if name not in busy and now - _used_at(project.folder, name) > KEEP_TREES:
                    project.worktrees.discard(name)
            keep = int(self._context.user.worktrees.disk_gb * (1 << 30))
            project.worktrees.empty_trash(older_than=KEEP_TREES, keep_bytes=keep, now=now)
            project.hub.tidy_if_crowded()


def _used_at(folder: Path, name: str) -> float:
    """When a run last started in this worktree."""
    mark = folder / "worktrees" / f"{name}.run"
    return mark.stat().st_mtime if mark.exists() else 0.0
