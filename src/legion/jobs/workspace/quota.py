"""The disk quota: measures the worktree and temp folder of each run, and stops a run that uses too much.

A thread of the daemon measures at intervals. It uses a small part of one core, however large the trees are.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from legion.domain.runs import Run
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop
from legion.jobs.workspace import slots
from legion.runner import launch
from legion.store.board import projects
from legion.store.work import runs
from legion.system import files, trees

log = logging.getLogger(__name__)

_EVERY = 15.0
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

    @property
    def reason(self) -> str:
        """For people; continues a sentence after a colon."""
        return f"its worktree and temp folder grew to {_shown(self.bytes)}, above the limit of {_shown(self.limit)}"

    @property
    def feedback(self) -> str:
        return (
            f"You were stopped because your worktree and your temp folder together held {_shown(self.bytes)}, and "
            f"{_shown(self.limit)} are allowed. What you wrote in the worktree is still there, the temp folder is "
            f"empty. First delete what you do not need, then continue with less."
        )


class QuotaWatch(BackgroundLoop):
    """Measures the active runs, one after the other."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, "quota")

    def _repeat(self) -> None:
        rest = 0.0
        while not self._stopping.wait(rest):
            began = time.monotonic()
            self._attempt("sweeping the slots", lambda: slots.sweep(self.context))
            self._attempt("the disk quota check", lambda: enforce(self.context))
            rest = max(_EVERY, _SHARE * (time.monotonic() - began))


def enforce(context: Context) -> None:
    """Stop every run that uses more than it may."""
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


def exceeded(context: Context, run: Run) -> QuotaExceeded | None:
    """The reason, if the run was stopped because of the quota."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        held, limit = _mark(context, run.name).read_text().split()
        return QuotaExceeded(bytes=int(held), limit=int(limit))
    return None


def allow_rest(context: Context, run: Run, before: Iterable[Run], tree: Path) -> None:
    """A run after one that was stopped may start above the quota: it gets a chance to clean up."""
    if any(exceeded(context, earlier) for earlier in before):
        size = measure((tree,))
        files.write_atomic(_allowed(context, run), str(size.bytes + _HEADROOM))


def limit(context: Context, run: Run) -> int:
    """How many bytes the run may use; 0: no limit."""
    quota = context.user.environment.disk_mb * _MEGABYTE
    with contextlib.suppress(FileNotFoundError, ValueError):
        return max(quota, int(_allowed(context, run).read_text())) if quota else 0
    return quota


def _stop(context: Context, run: Run, held: int, limit: int) -> None:
    # Before the stop: the job that concludes the run reads the reason, and saving a large tree may take longer than the
    # pause between two measurements.
    asked_before = exceeded(context, run) is not None
    if not asked_before:
        mark(context, run.name, held=held, limit=limit)
        log.warning("quota: stopping run %s: it uses %s, and %s are allowed", run.name, _shown(held), _shown(limit))
    if not launch.stop(context.data.runs / run.name) and not asked_before:
        _mark(context, run.name).unlink()


def mark(context: Context, run: str, *, held: int, limit: int) -> None:
    """Record that the run of this name was stopped because of the quota."""
    files.write_atomic(_mark(context, run), f"{held} {limit}")


def _mark(context: Context, run: str) -> Path:
    return context.data.runs / run / "over-quota"


def _allowed(context: Context, run: Run) -> Path:
    return context.data.runs / run.name / "quota-allowance"


def _shown(size: int) -> str:
    return f"{size / _MEGABYTE:.0f} MB"
