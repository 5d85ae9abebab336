"""Resume times after a provider's limit: at the reset, one after the other, or after a growing pause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from legion.domain.runs import Outcome, Run

AFTER_RESET = 2.0
"""Seconds: clocks differ a little."""
APART = 3.0
"""Seconds between the wakes of parked tickets, so that they do not meet the next limit together."""
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 900.0


def wakes_at(now: float, resets_at: float | None, earlier: Sequence[Run]) -> float:
    """The time from which a ticket may resume.

    `earlier` are the ticket's runs, oldest first, this one included: while the provider names no reset,
    each limited run in a row doubles the pause.
    """
    if resets_at is not None and resets_at > now:
        return resets_at + AFTER_RESET
    pause: float = FIRST_PAUSE * 2 ** max(0, _in_a_row(earlier) - 1)
    return now + min(LONGEST_PAUSE, pause)


def apart(moment: float, others: Iterable[float]) -> float:
    """The first time from this one on that is far enough from those at which others wake."""
    for other in sorted(others):
        if abs(other - moment) < APART:
            moment = other + APART
    return moment


def _in_a_row(runs: Sequence[Run]) -> int:
    count = 0
    for run in reversed(runs):
        if run.outcome not in (None, Outcome.LIMITED):
            break
        count += 1
    return count
