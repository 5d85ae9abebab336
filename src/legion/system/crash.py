"""Crash points: the places before and after each commit and each outside effect, where a crash must lose nothing.

A point is named here and reached at exactly one place in the code. Tests arm one point, run until the process dies
there, start it again and check for damage; a point that no test reaches fails the suite. When no point is armed,
`reach` costs two comparisons.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from enum import Enum
from pathlib import Path


class Point(Enum):
    """Values are `package.what.when`. Keep each list in the order in which a ticket passes the points."""

    # jobs
    CONDUCT_BEFORE_CLAIM = "jobs.conduct.before-claim"
    CONDUCT_AFTER_CLAIM = "jobs.conduct.after-claim"
    RUN_BEFORE_WORKTREE = "jobs.run.before-worktree"
    RUN_AFTER_WORKTREE = "jobs.run.after-worktree"
    SETUP_BEFORE_RUN = "jobs.setup.before-run"
    SETUP_AFTER_RECORD = "jobs.setup.after-record"
    RUN_BEFORE_LAUNCH = "jobs.run.before-launch"
    RUN_AFTER_LAUNCH = "jobs.run.after-launch"
    SAVE_BEFORE_SNAPSHOT = "jobs.save.before-snapshot"
    SAVE_AFTER_SNAPSHOT = "jobs.save.after-snapshot"
    SAVE_AFTER_KEEP = "jobs.save.after-keep"
    LIVE_AFTER_NOTE = "jobs.live.after-note"
    LIVE_AFTER_STEP = "jobs.live.after-step"
    RUN_BEFORE_CONCLUDE = "jobs.run.before-conclude"
    RUN_AFTER_CONCLUDE = "jobs.run.after-conclude"
    SERVE_BEFORE_WORKTREE = "jobs.serve.before-worktree"
    SERVE_BEFORE_LAUNCH = "jobs.serve.before-launch"
    SERVE_AFTER_LAUNCH = "jobs.serve.after-launch"
    SERVE_BEFORE_CONCLUDE = "jobs.serve.before-conclude"
    SERVE_AFTER_CONCLUDE = "jobs.serve.after-conclude"
    CHECK_BEFORE_RUN = "jobs.check.before-run"
    CHECK_BEFORE_RECEIPT = "jobs.check.before-receipt"
    CHECK_AFTER_RECEIPT = "jobs.check.after-receipt"
    CHECK_BEFORE_CONCLUDE = "jobs.check.before-conclude"
    CHECK_AFTER_CONCLUDE = "jobs.check.after-conclude"
    ADVISE_BEFORE_WORKTREE = "jobs.advise.before-worktree"
    ADVISE_AFTER_WORKTREE = "jobs.advise.after-worktree"
    REVIEW_BEFORE_WORKTREE = "jobs.review.before-worktree"
    REVIEW_BEFORE_LAUNCH = "jobs.review.before-launch"
    REVIEW_AFTER_LAUNCH = "jobs.review.after-launch"
    REVIEW_BEFORE_CONCLUDE = "jobs.review.before-conclude"
    REVIEW_AFTER_CONCLUDE = "jobs.review.after-conclude"
    PLAN_BEFORE_WORKTREE = "jobs.plan.before-worktree"
    PLAN_BEFORE_LAUNCH = "jobs.plan.before-launch"
    PLAN_AFTER_LAUNCH = "jobs.plan.after-launch"
    PLAN_BEFORE_CONCLUDE = "jobs.plan.before-conclude"
    PLAN_AFTER_CONCLUDE = "jobs.plan.after-conclude"
    READER_BEFORE_STORE = "jobs.reader.before-store"
    READER_AFTER_STORE = "jobs.reader.after-store"
    MACHINE_PLACE_BEFORE_ROW = "jobs.machine-place.before-row"
    MACHINE_PLACE_AFTER_ROW = "jobs.machine-place.after-row"
    MACHINE_PLACE_AFTER_QUEUE = "jobs.machine-place.after-queue"
    MACHINE_TAKE_BEFORE_ROW = "jobs.machine-take.before-row"
    MACHINE_TAKE_AFTER_ROW = "jobs.machine-take.after-row"
    MACHINE_PACK_AFTER_KEEP = "jobs.machine-pack.after-keep"
    MACHINE_END_BEFORE_ROW = "jobs.machine-end.before-row"
    MACHINE_END_AFTER_ROW = "jobs.machine-end.after-row"
    MACHINE_LATE_AFTER_KEEP = "jobs.machine-late.after-keep"
    RACE_BEFORE_START = "jobs.race.before-start"
    RACE_AFTER_START = "jobs.race.after-start"
    RACE_BEFORE_READING = "jobs.race.before-reading"
    RACE_AFTER_READING = "jobs.race.after-reading"
    RACE_BEFORE_DECISION = "jobs.race.before-decision"
    RACE_AFTER_DECISION = "jobs.race.after-decision"
    LAND_BEFORE_TEST = "jobs.land.before-test"
    LAND_BEFORE_SWAP = "jobs.land.before-swap"
    LAND_AFTER_SWAP = "jobs.land.after-swap"
    LAND_AFTER_RECORD = "jobs.land.after-record"
    FORGE_BEFORE_CLAIM = "jobs.forge.before-claim"
    FORGE_AFTER_CLAIM = "jobs.forge.after-claim"
    FORGE_AFTER_OFFER = "jobs.forge.after-offer"
    REWIND_BEFORE_MOVE = "jobs.rewind.before-move"
    REWIND_AFTER_MOVE = "jobs.rewind.after-move"
    REWIND_AFTER_STOP = "jobs.rewind.after-stop"
    ADOPT_BEFORE_DISPATCH = "jobs.adopt.before-dispatch"
    ADOPT_AFTER_DISPATCH = "jobs.adopt.after-dispatch"
    REBUILD_BEFORE_ASIDE = "jobs.rebuild.before-aside"
    REBUILD_BEFORE_PUBLISH = "jobs.rebuild.before-publish"
    REBUILD_AFTER_PUBLISH = "jobs.rebuild.after-publish"

    # service
    EPIC_BEFORE_END = "service.epic.before-end"
    EPIC_AFTER_END = "service.epic.after-end"

    # forge
    FORGE_WRITE_BEFORE_SEND = "forge.write.before-send"
    FORGE_WRITE_AFTER_SEND = "forge.write.after-send"

    # store
    STORE_MIGRATION_BEFORE_COMMIT = "store.migration.before-commit"
    STORE_MIGRATION_AFTER_COMMIT = "store.migration.after-commit"
    STORE_WRITE_BEFORE_COMMIT = "store.write.before-commit"
    STORE_WRITE_AFTER_COMMIT = "store.write.after-commit"

    # runner
    RUNNER_LAUNCH_BEFORE_START = "runner.launch.before-start"
    RUNNER_RUN_BEFORE_LOCK = "runner.run.before-lock"
    RUNNER_RUN_AFTER_LOCK = "runner.run.after-lock"
    RUNNER_LAUNCH_AFTER_START = "runner.launch.after-start"
    RUNNER_PROGRAM_BEFORE_START = "runner.program.before-start"
    RUNNER_PROGRAM_AFTER_START = "runner.program.after-start"
    RUNNER_RESULT_BEFORE_WRITE = "runner.result.before-write"
    RUNNER_RESULT_AFTER_WRITE = "runner.result.after-write"

    # machine
    MACHINE_JOB_AFTER_WRITE = "machine.job.after-write"
    MACHINE_FETCH_AFTER_PACK = "machine.fetch.after-pack"
    MACHINE_START_BEFORE_LAUNCH = "machine.start.before-launch"
    MACHINE_START_AFTER_LAUNCH = "machine.start.after-launch"
    MACHINE_SAVE_AFTER_KEEP = "machine.save.after-keep"
    MACHINE_SEND_AFTER_FILES = "machine.send.after-files"
    MACHINE_SEND_AFTER_PACK = "machine.send.after-pack"
    MACHINE_SEND_AFTER_END = "machine.send.after-end"

    # git
    GIT_HUB_BEFORE_PUBLISH = "git.hub.before-publish"
    GIT_HUB_AFTER_PUBLISH = "git.hub.after-publish"
    GIT_PERSON_AFTER_FETCH = "git.person.after-fetch"
    GIT_POOL_BEFORE_PUBLISH = "git.pool.before-publish"
    GIT_POOL_AFTER_CLAIM = "git.pool.after-claim"
    GIT_TREE_BEFORE_PUBLISH = "git.tree.before-publish"
    GIT_TREE_AFTER_PUBLISH = "git.tree.after-publish"
    GIT_COMMITS_BEFORE_KEEP = "git.commits.before-keep"
    GIT_SNAPSHOT_BEFORE_COMMIT = "git.snapshot.before-commit"
    GIT_SNAPSHOT_AFTER_COMMIT = "git.snapshot.after-commit"
    GIT_KEEP_AFTER = "git.keep.after"
    GIT_REPLANT_AFTER_TRASH = "git.replant.after-trash"
    GIT_CHECK_TREE_AFTER_MOVE = "git.check-tree.after-move"
    GIT_CHECK_TREE_BEFORE_READY = "git.check-tree.before-ready"
    GIT_TARGET_BEFORE_SWAP = "git.target.before-swap"
    GIT_TARGET_AFTER_SWAP = "git.target.after-swap"
    GIT_BOARD_BEFORE_SWAP = "git.board.before-swap"
    GIT_BOARD_AFTER_SWAP = "git.board.after-swap"
    GIT_COLLECT_AFTER_FETCH = "git.collect.after-fetch"
    GIT_COLLECT_AFTER_MOVE = "git.collect.after-move"
    GIT_REMOTE_BEFORE_PUSH = "git.remote.before-push"
    GIT_REMOTE_AFTER_PUSH = "git.remote.after-push"
    GIT_DISCARD_AFTER_TRASH = "git.discard.after-trash"


_armed: frozenset[tuple[str, int]] = frozenset()
_log: str | None = None
_thread: int | None = None
"""Only this one dies; None: every thread."""


def load_environment() -> None:
    """Read LEGION_CRASH_AT=POINT#NTH,POINT#NTH and LEGION_CRASH_LOG, at the start of a process."""
    global _armed, _log
    moments = [word.partition("#") for word in os.environ.get("LEGION_CRASH_AT", "").split(",") if word]
    _armed = frozenset((name, int(nth or 1)) for name, _, nth in moments)
    _log = os.environ.get("LEGION_CRASH_LOG")


load_environment()


def arm(point: Point | None, log: Path | None = None, *, nth: int = 1) -> None:
    """Make this process and those it forks die at the point. LEGION_CRASH_AT=POINT#NTH does the same from outside.

    With a log, visits are counted over all processes that share it; without one, every visit is the first.
    """
    arm_all([(point, nth)] if point else [], log)


def arm_here(point: Point) -> None:
    """Make this process die when the calling thread reaches the point; other threads pass it."""
    global _thread
    _thread = threading.get_ident()
    arm(point)


def arm_all(moments: Iterable[tuple[Point, int]], log: Path | None) -> None:
    """Make it die at the first of these moments: the nth visit of a point."""
    global _armed, _log
    _armed = frozenset((point.value, nth) for point, nth in moments)
    _log = str(log) if log else None


def reach(point: Point) -> None:
    """Record a visit of the point, and die if it is armed."""
    nth = 1 if _log is None else _note(point, _log)
    if (point.value, nth) in _armed and _thread in (None, threading.get_ident()):
        os.kill(os.getpid(), signal.SIGKILL)


def _note(point: Point, log: str) -> int:
    """Append to the log. Returns how often it names the point up to here, also while other processes write."""
    line = f"{point.value}\n".encode()
    handle = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, line)
        noted = os.pread(handle, os.lseek(handle, 0, os.SEEK_CUR), 0)
    finally:
        os.close(handle)
    return noted.splitlines(keepends=True).count(line)
