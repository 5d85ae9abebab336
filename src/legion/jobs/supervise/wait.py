"""Starts or adopts the runner of a run and waits for its end.

The runner survives a daemon restart; every new daemon looks it up again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from legion.domain.runs import Run
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.supervise import usage
from legion.runner import launch
from legion.runner.journal import JournalEvent
from legion.runner.launch import EndedRun, FreshRun, LostRun
from legion.runner.spec import RunnerError, read_spec
from legion.system import crash
from legion.system.crash import Point

log = logging.getLogger(__name__)

_CHECK_EVERY = 2.0
"""Seconds between two checks whether a run that works is still wanted."""


@dataclass(frozen=True, kw_only=True)
class CrashPoints:
    """Where tests may kill the daemon: before and after a step."""

    before: Point
    after: Point


def run_to_end(
    context: Context,
    this_run: Run,
    *,
    wanted: Callable[[], bool],
    prepare: Callable[[], None],
    launch_points: CrashPoints,
    on_event: Callable[[JournalEvent], None],
) -> EndedRun | LostRun | None:
    """None where the run is no longer wanted: a person may have decided otherwise since its job started.

    Afterwards the store holds what the run spent, and the limits that its provider reported.
    """
    folder = context.data.runs / this_run.name
    found = launch.settle(folder)
    if isinstance(found, FreshRun):
        with context.start_limit.hold():
            if not wanted():
                return None
            prepare()
            if not wanted():
                return None
            crash.reach(launch_points.before)
            context.launcher.start(folder)
            crash.reach(launch_points.after)
    if not isinstance(found, EndedRun | LostRun):
        if not wanted():
            # It was cancelled before the runner could be reached, or by a daemon that died before it stopped the run.
            launch.stop(folder, grace=0)
        found = launch.wait(folder, stop_when_unwanted(folder, wanted, on_event))
        context.start_limit.let_starts_pass()
    usage.catch_up(context)
    return found


def stop_when_unwanted(
    folder: Path, wanted: Callable[[], bool], pass_on: Callable[[JournalEvent], None]
) -> Callable[[JournalEvent], None]:
    """Pass each journal event on, and stop a run that still works although its ticket was stopped.

    The request to stop may have reached a runner that did not answer, or was lost with the process that sent it.
    """
    checked_at = -_CHECK_EVERY

    def on_event(event: JournalEvent) -> None:
        nonlocal checked_at
        pass_on(event)
        if time.monotonic() - checked_at < _CHECK_EVERY:
            return
        checked_at = time.monotonic()
        if wanted():
            return
        try:
            launch.stop(folder, grace=0)
        except RunnerError as silent:
            log.warning("run %s does not stop yet: %s", folder.name, silent.message)

    return on_event


# Tells whether a person held the conversation of a run in a terminal.


def was_wheel(context: Board, this_run: Run) -> bool:
    """Whether a person held the conversation in this run."""
    try:
        return read_spec(context.data.runs / this_run.name).options.get("wheel") is True
    except RunnerError:
        return False
