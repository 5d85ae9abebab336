"""A runner is adopted or started, and waited for, in every kind of run. It outlives us: each life asks anew."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from legion.domain.runs import Run
from legion.jobs.context import Context
from legion.jobs.supervise import usage
from legion.runner import launch
from legion.runner.journal import JournalEvent
from legion.runner.launch import EndedRun, FreshRun, LostRun
from legion.runner.spec import RunnerError

log = logging.getLogger(__name__)

_CHECK_EVERY = 2.0
"""Seconds between two checks whether a run that works is still wanted."""


def run_to_end(
    context: Context,
    this_run: Run,
    *,
    wanted: Callable[[], bool],
    prepare: Callable[[], None],
    start: Callable[[], None],
    hear: Callable[[JournalEvent], None],
) -> EndedRun | LostRun | None:
    """None where nobody wants it started any more: a person may have decided otherwise since its job began.

    Afterwards the store knows what it spent, and what its provider said of limits.
    """
    folder = context.data.runs / this_run.name
    found = launch.find(folder)
    if isinstance(found, FreshRun):
        if not wanted():
            return None
        prepare()
        if not wanted():
            return None
        start()
    if not isinstance(found, EndedRun | LostRun):
        if not wanted():
            # Whoever took its work away did so before the runner could hear of it, or died before telling.
            launch.stop(folder, grace=0)
        found = launch.wait(folder, stop_when_unwanted(folder, wanted, hear))
    usage.catch_up(context)
    return found


def stop_when_unwanted(
    folder: Path, wanted: Callable[[], bool], hear: Callable[[JournalEvent], None]
) -> Callable[[JournalEvent], None]:
    """Pass each journal event on, and stop a run that still works although its ticket was stopped.

    The request to stop may have reached a runner that did not answer, or was lost with the process that sent it.
    """
    checked_at = -_CHECK_EVERY

    def on_event(event: JournalEvent) -> None:
        nonlocal checked_at
        hear(event)
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
