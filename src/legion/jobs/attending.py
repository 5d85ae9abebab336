"""A runner is adopted or started, and waited for, in every kind of run. It outlives us: each life asks anew."""

from __future__ import annotations

from collections.abc import Callable

from legion.domain.runs import Run
from legion.jobs import spending
from legion.jobs.world import World
from legion.runner import launch
from legion.runner.journal import JournalEvent
from legion.runner.launch import Ended, Fresh, Lost


def until_end(
    world: World,
    this_run: Run,
    *,
    wanted: Callable[[], bool],
    prepare: Callable[[], None],
    start: Callable[[], None],
    hear: Callable[[JournalEvent], None],
) -> Ended | Lost | None:
    """None where nobody wants it started any more: a person may have decided otherwise since its job began.

    Afterwards the store knows what it spent, and what its provider said of limits.
    """
    folder = world.data.runs / this_run.name
    found = launch.find(folder)
    if isinstance(found, Fresh):
        if not wanted():
            return None
        prepare()
        if not wanted():
            return None
        start()
    if not isinstance(found, Ended | Lost):
        if not wanted():
            # Whoever took its work away did so before the runner could hear of it, or died before telling.
            launch.stop(folder, grace=0)
        found = launch.wait(folder, hear)
    spending.catch_up(world)
    return found
