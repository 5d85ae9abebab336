"""The throttle of one account: fewer starts before a provider's limit, none at it, one at a time after its reset.

A limit is known from the provider's last answer: how much of a span is used, and when the span ends. Runs are never
paused, only starts are held. A run that reaches the limit all the same is parked by the limit itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.usage import ProviderLimit

CAREFUL = 600.0
"""Seconds after a reset in which agents start one after the other."""
_REFUSED = 429


class ThrottleState(Enum):
    OPEN = "open"
    SLOW = "slow"
    """Near the limit: fewer at once, one after the other."""
    CLOSED = "closed"
    """At the limit: no start until its reset."""


@dataclass(frozen=True, kw_only=True)
class ThrottleSettings:
    """From the person's settings. `slow_from` and `stop_at` are shares of the limit."""

    on: bool = True
    slow_from: float = 0.8
    stop_at: float = 0.97


@dataclass(frozen=True, kw_only=True)
class Throttle:
    """The throttle of one account at one moment."""

    stance: ThrottleState = ThrottleState.OPEN
    most: int | None = None
    """Agents at once; None: as many as there is room for."""
    apart: float = 0.0
    """Seconds between two starts."""
    until: float | None = None
    """When that may change by itself."""
    why: str = ""


OPEN = Throttle()


def read(limit: ProviderLimit | None, settings: ThrottleSettings, room: int, now: float) -> Throttle:
    """The throttle of an account with this limit, where `room` agents could work at once."""
    if not settings.on or limit is None:
        return OPEN
    resets_at = limit.resets_at
    if resets_at is not None and now >= resets_at + AFTER_RESET:
        # The span is over. How much of the next one is used is not known yet.
        if now < resets_at + CAREFUL:
            return Throttle(apart=APART, until=resets_at + CAREFUL)
        return OPEN
    used = limit.utilization
    refused = limit.status == _REFUSED
    if resets_at is not None and (refused or (used is not None and used >= settings.stop_at)):
        return Throttle(stance=ThrottleState.CLOSED, most=0, until=resets_at + AFTER_RESET, why=_describe(limit))
    if used is not None and used >= settings.slow_from:
        # From all of the room at `slow_from` down to one at `stop_at`.
        way = (used - settings.slow_from) / max(settings.stop_at - settings.slow_from, 1e-9)
        most = max(1, math.ceil(room * (1.0 - min(way, 1.0))))
        until = resets_at + AFTER_RESET if resets_at is not None else None
        return Throttle(stance=ThrottleState.SLOW, most=most, apart=APART, until=until, why=_describe(limit))
    return OPEN


def _describe(limit: ProviderLimit) -> str:
    span = f" of {limit.span}" if limit.span else ""
    used = f"{limit.utilization:.0%}{span} is used" if limit.utilization is not None else "it refuses to serve"
    return f"{limit.provider}: {used}"


# Resume times after a provider's limit: at the reset, one after the other, or after a growing pause.

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
