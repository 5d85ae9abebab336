"""Ends a run of any kind: explains a stop, releases what the run held, and records everything in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.decide import Claim
from legion.jobs.agent import model_run
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.supervise import questions
from legion.jobs.supervise.outcome import ended_by
from legion.jobs.supervise.usage import stopped_for_budget
from legion.jobs.supervise.wait import CrashPoints
from legion.jobs.workspace import environment, quota
from legion.store.database.transactions import Transaction
from legion.store.work import claims, runs
from legion.system import crash


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
