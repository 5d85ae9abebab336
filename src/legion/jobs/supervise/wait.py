"""A runner is adopted or started, and waited for, in every kind of run. It outlives us: each life asks anew."""

from __future__ import annotations

from collections.abc import Callable

from legion.domain.runs import Run
from legion.jobs.context import Context
from legion.jobs.supervise import usage
from legion.runner import launch
from legion.runner.journal import JournalEvent
from legion.runner.launch import EndedRun, FreshRun, LostRun


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
        found = launch.wait(folder, hear)
    usage.catch_up(context)
    return found
