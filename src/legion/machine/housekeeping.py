"""Keeps warm worktrees, and a machine's disk small: old run folders, unused worktrees, the trash, crowded mirrors.

The head has everything that is deleted here, and a worktree stays in the trash for a week first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from legion.domain.errors import LegionError
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import quota, setup
from legion.machine.work import REPORTED
from legion.store.board import projects
from legion.system import loops, trees

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
        self._stopping = False
        self._wake = threading.Event()
        self._thread = loops.lasting(
            self._watch, name="housekeeping", stopped=lambda pause: self._wake.wait(pause) and self._stopping
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def poke(self) -> None:
        """No run works any more, so there is time to make trees for the next ones; or a target has moved."""
        self._wake.set()

    def _watch(self) -> None:
        tidied = time.monotonic()
        while True:
            self._wake.wait(_EVERY)
            self._wake.clear()
            if self._stopping:
                return
            try:
                if time.monotonic() - tidied >= _EVERY:
                    tidied = time.monotonic()
                    self.tidy(time.time())
                if quota.has_room(self._context):
                    self.keep_warm()
                else:
                    self.make_room()
            except (LegionError, OSError) as trouble:
                log.warning("housekeeping failed, will retry: %s", trouble)

    def make_room(self) -> None:
        """The disk is full: delete everything that no run uses now. The head has what was saved of it."""
        log.warning("the disk is full: deleting worktrees and folders of runs that have ended")
        for mark in self._context.data.runs.glob(f"*/{REPORTED}"):
            trees.remove(mark.parent)
        with self._context.store.read() as tx:
            known = projects.all(tx)
        for record in known:
            project = self._context.project_of(record)
            project.worktrees.drop_waiting()
            busy = set(self._busy())
            for name in project.worktrees.names():
                if name not in busy:
                    project.worktrees.discard(name)
            project.worktrees.empty_trash(older_than=0.0, keep_bytes=0, now=time.time() + 1.0)

    def keep_warm(self) -> None:
        """Trees of each project's target that wait for a run, with their dependencies."""
        with self._context.store.read() as tx:
            known = projects.all(tx)
        settings = self._context.user.worktrees
        for record in known:
            project = self._context.project_of(record)
            target = project.hub.target()
            if target is None:
                continue
            setup.drop_stale_pool(project)
            project.worktrees.freshen(target)
            if self._busy():
                continue
            project.worktrees.fill(
                settings.warm(project.config.agents.parallel),
                target,
                disk_cap_bytes=int(settings.disk_gb * (1 << 30)),
                prepare=partial(self._prepare, project, target) if project.config.setup.run else None,
            )

    def _prepare(self, project: ProjectContext, target: str, tree: Path) -> None:
        setup.ensure(self._context, project, tree, shows=target, landed=target)

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
