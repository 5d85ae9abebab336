"""Starts or adopts the runner of a run, waits for its end, and records it in one transaction.

The runner survives a daemon restart; every new daemon looks it up again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.decide import Claim
from legion.jobs.agent import model_run
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.supervise import questions, usage
from legion.jobs.supervise.outcome import ended_by
from legion.jobs.supervise.usage import stopped_for_budget
from legion.jobs.workspace import environment, quota
from legion.runner import launch
from legion.runner.journal import JournalEvent
from legion.runner.launch import EndedRun, FreshRun, LostRun
from legion.runner.spec import RunnerError, read_spec
from legion.store.database.transactions import Transaction
from legion.store.work import claims, runs
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


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """How a run ended, as its row will hold it."""

    outcome: Outcome
    detail: str
    notes: tuple[str, ...] = ()
    """Added to the detail, whatever the reason of the end was."""
    saved: str | None = None
    """The commit that holds what it left in its tree."""


def finish(
    context: Context,
    claim: Claim,
    this_run: Run | None,
    end: RunEnd | None,
    record: Callable[[Transaction, str], None],
    points: CrashPoints,
) -> bool:
    """`record` changes the run's ticket or agent in the transaction that ends run and claim; it gets the detail.

    False, and nothing is recorded, where the claim was lost meanwhile. A job without a run only ends its claim.
    """
    detail = ""
    if this_run is not None and end is not None:
        detail = "; ".join((explain_stop(context, this_run, end.outcome) or end.detail, *end.notes))
        environment.release(context, this_run, end.outcome)
        model_run.revoke_pass(context, this_run)
        questions.close_all(context, this_run)
    crash.reach(points.before)
    with context.store.write() as tx:
        if not claims.still_mine(tx, claim):
            return False
        if this_run is not None and end is not None:
            runs.end(tx, this_run.id, end.outcome, detail, end.saved)
        record(tx, detail)
        claims.finish(tx, claim)
    crash.reach(points.after)
    return True


def explain_stop(context: Board, this_run: Run, outcome: Outcome) -> str:
    """Why Legion itself stopped the run: its disk quota, a budget or the watchdog. Empty for any other end."""
    if outcome is not Outcome.STOPPED:
        return ""
    if (over := quota.exceeded(context, this_run)) is not None:
        return over.reason
    if empty := stopped_for_budget(context, this_run):
        return empty
    ended = ended_by(context, this_run)
    return ended.why if ended is not None else ""
