"""Starts or adopts the runner of a run and waits for its end.

The runner survives a daemon restart; every new daemon looks it up again.
"""

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
    on_event: Callable[[JournalEvent], None],
) -> EndedRun | LostRun | None:
    """None where the run is no longer wanted: a person may have decided otherwise since its job started.

    Afterwards the store holds what the run spent, and the limits that its provider reported.
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
            # It was cancelled before the runner could be reached, or by a daemon that died before it stopped the run.
            launch.stop(folder, grace=0)
        found = launch.wait(folder, on_event)
    usage.catch_up(context)
    return found
