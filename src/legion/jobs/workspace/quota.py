"""The disk quota: measures the worktree and temp folder of each run, and stops a run that uses too much.

A thread of the daemon measures at intervals. It uses a small part of one core, however large the trees are. It also
looks at what is free on the disk: where that becomes too little, the run that holds the most is stopped.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from legion.domain.runs import Run
from legion.jobs.board import Board
from legion.jobs.loop import BackgroundLoop
from legion.jobs.trees import Trees
from legion.jobs.workspace import slots
from legion.runner import launch
from legion.store.board import projects
from legion.store.work import runs
from legion.system import capacity, files, trees

log = logging.getLogger(__name__)

_EVERY = 15.0
_GLANCE = 1.0
"""Seconds between two looks at what is free: a program fills a disk within seconds."""
_SHARE = 20
"""A measurement that took a second is followed by a pause of so many."""
_MOST_ENTRIES = 500_000
_HEADROOM = 64 << 20
"""What a run that starts above the quota may still write: cleaning up may need room."""
_MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class TreeSize:
    bytes: int
    whole: bool
    """False if counting stopped early: there is at least so much."""


@dataclass(frozen=True, kw_only=True)
class QuotaExceeded:
    bytes: int
    limit: int
    """0: it was within its quota, and the disk was full."""

    @property
    def reason(self) -> str:
        """For people; continues a sentence after a colon."""
        if not self.limit:
            return f"the disk was full, and its worktree and temp folder held the most, {_shown(self.bytes)}"
        return f"its worktree and temp folder grew to {_shown(self.bytes)}, above the limit of {_shown(self.limit)}"

    @property
    def feedback(self) -> str:
        if not self.limit:
            return (
                f"You were stopped because the disk was full: your worktree and your temp folder held the most of all, "
                f"{_shown(self.bytes)}. First delete what you do not need, then continue with much less."
            )
        return (
            f"You were stopped because your worktree and your temp folder together held {_shown(self.bytes)}, and "
            f"{_shown(self.limit)} are allowed. What you wrote in the worktree is still there, the temp folder is "
            f"empty. First delete what you do not need, then continue with less."
        )


class QuotaWatch(BackgroundLoop):
    """Measures the active runs, one after the other."""

    def __init__(self, context: Trees) -> None:
        super().__init__(context, "quota")
        self._places = {context.data.root}
        """Folders whose disks must not be full."""

    def _repeat(self) -> None:
        due = 0.0
        while not self._stopping.wait(_GLANCE):
            began = time.monotonic()
            self._attempt("making room on the disk", self._glance)
            if began >= due:
                self._attempt("sweeping the slots", lambda: slots.sweep(self.context))
                self._attempt("the disk quota check", self._measure)
                due = time.monotonic() + max(_EVERY, _SHARE * (time.monotonic() - began))

    def _glance(self) -> None:
        if any(is_short(self.context, place) for place in self._places):
            relieve(self.context)

    def _measure(self) -> None:
        self._places = {self.context.data.root, *enforce(self.context)}


def has_room(context: Board) -> bool:
    """Whether so much of the disk is free that runs may start."""
    return capacity.free_mb(context.data.root) >= context.user.environment.free_mb


def relieve(context: Board) -> None:
    """Where the disk is nearly full, stop the run that holds the most of it. One at a time: its end makes room."""
    with context.store.read() as tx:
        homes = {project.id: Path(project.worktrees) for project in projects.all(tx)}
        here = [one for one in runs.active(tx) if one.project in homes and one.machine in ("", context.machine)]
    whole = is_short(context, context.data.root)
    suspects = [one for one in here if whole or is_short(context, homes[one.project])]
    if not suspects or any(exceeded(context, one) for one in suspects):
        return
    held = {one: measure((slots.temp(context, one.seat), homes[one.project] / one.seat)).bytes for one in suspects}
    most = max(suspects, key=lambda one: held[one])
    # Where something else fills the disk, the end of a small run would not help.
    if held[most] >= context.user.environment.free_mb * _MEGABYTE // 4:
        _stop(context, most, held[most], 0)


def is_short(context: Board, place: Path) -> bool:
    """Whether so little is free there that a run has to go."""
    return place.exists() and capacity.free_mb(place) < context.user.environment.free_mb // 2


def enforce(context: Board) -> set[Path]:
    """Stop every run that uses more than it may. Returns the folders that hold worktrees of active runs."""
    with context.store.read() as tx:
        active = runs.active(tx)
        homes = {project.id: Path(project.worktrees) for project in projects.all(tx)}
    for run in active:
        # A run on another machine has its tree there.
        if run.project in homes and run.machine in ("", context.machine):
            tree = homes[run.project] / run.seat
            most = limit(context, run)
            if most and (size := measure((slots.temp(context, run.seat), tree), enough=most)).bytes > most:
                _stop(context, run, size.bytes, most)
    return {homes[run.project] for run in active if run.project in homes}


def measure(places: Iterable[Path], *, enough: int | None = None, most: int = _MOST_ENTRIES) -> TreeSize:
    """Bytes on disk below these folders. Counting stops above `enough` bytes, or at `most` files."""
    total = entries = 0
    for place in places:
        with contextlib.closing(trees.walk(place)) as found:
            for one in found:
                facts = one.facts
                total += facts.st_blocks * 512 if facts is not None else 0
                entries += 1
                if entries >= most or (enough is not None and total > enough):
                    return TreeSize(bytes=total, whole=False)
    return TreeSize(bytes=total, whole=True)


def exceeded(context: Board, run: Run) -> QuotaExceeded | None:
    """The reason, if the run was stopped because of the quota."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        held, limit = _mark(context, run.name).read_text().split()
        return QuotaExceeded(bytes=int(held), limit=int(limit))
    return None


def allow_rest(context: Board, run: Run, before: Iterable[Run], tree: Path) -> None:
    """A run after one that was stopped may start above the quota: it gets a chance to clean up."""
    if any(exceeded(context, earlier) for earlier in before):
        size = measure((tree,))
        files.write_atomic(_allowed(context, run), str(size.bytes + _HEADROOM))


def limit(context: Board, run: Run) -> int:
    """How many bytes the run may use; 0: no limit."""
    quota = context.user.environment.disk_mb * _MEGABYTE
    with contextlib.suppress(FileNotFoundError, ValueError):
        return max(quota, int(_allowed(context, run).read_text())) if quota else 0
    return quota


def _stop(context: Board, run: Run, held: int, limit: int) -> None:
    # Before the stop: the job that concludes the run reads the reason, and saving a large tree may take longer than the
    # pause between two measurements.
    asked_before = exceeded(context, run) is not None
    if not asked_before:
        try:
            mark(context, run.name, held=held, limit=limit)
        except OSError as full:
            # The next look records it: its end makes room.
            log.warning("quota: not recorded yet: %s", full)
        log.warning("quota: stopping run %s: %s", run.name, QuotaExceeded(bytes=held, limit=limit).reason)
    if not launch.stop(context.data.runs / run.name) and not asked_before:
        _mark(context, run.name).unlink(missing_ok=True)


def mark(context: Board, run: str, *, held: int, limit: int) -> None:
    """Record that the run of this name was stopped because of the quota."""
    files.write_atomic(_mark(context, run), f"{held} {limit}")


def _mark(context: Board, run: str) -> Path:
    return context.data.runs / run / "over-quota"


def _allowed(context: Board, run: Run) -> Path:
    return context.data.runs / run.name / "quota-allowance"


def _shown(size: int) -> str:
    return f"{size / _MEGABYTE:.0f} MB"
