"""One governor per account: slow down before a provider's limit, hold at it, and go on one after the other behind it.

A limit is known by what the provider said last: how much of a span is used, and when the span ends. What runs goes
on; only beginnings are held back. Whoever meets the wall all the same is parked by the limit itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from legion.domain.scheduling.limit_waits import AFTER_RESET, APART
from legion.domain.scheduling.usage import ProviderLimit

CAREFUL = 600.0
"""Seconds after a reset in which work begins one after the other."""
_REFUSED = 429


class ThrottleState(Enum):
    OPEN = "open"
    SLOW = "slow"
    """Near the limit: fewer at once, one after the other."""
    CLOSED = "closed"
    """At the limit: nothing begins until its reset."""


@dataclass(frozen=True, kw_only=True)
class ThrottleSettings:
    """What the person's settings say. `slow_from` and `stop_at` are shares of the limit."""

    on: bool = True
    slow_from: float = 0.8
    stop_at: float = 0.97


@dataclass(frozen=True, kw_only=True)
class Throttle:
    """How an account stands at this moment."""

    stance: ThrottleState = ThrottleState.OPEN
    most: int | None = None
    """Agents at once; None: as many as there is room for."""
    apart: float = 0.0
    """Seconds between two beginnings."""
    until: float | None = None
    """When that may change by itself."""
    why: str = ""


OPEN = Throttle()


def read(limit: ProviderLimit | None, governing: ThrottleSettings, room: int, now: float) -> Throttle:
    """How an account with this limit stands, where `room` agents could work at once."""
    if not governing.on or limit is None:
        return OPEN
    resets_at = limit.resets_at
    if resets_at is not None and now >= resets_at + AFTER_RESET:
        # The span of which it spoke is over: what is used of the next one is not known yet.
        if now < resets_at + CAREFUL:
            return Throttle(apart=APART, until=resets_at + CAREFUL)
        return OPEN
    used = limit.utilization
    refused = limit.status == _REFUSED
    if resets_at is not None and (refused or (used is not None and used >= governing.stop_at)):
        return Throttle(stance=ThrottleState.CLOSED, most=0, until=resets_at + AFTER_RESET, why=_words(limit))
    if used is not None and used >= governing.slow_from:
        # From all of the room at `slow_from` down to one at `stop_at`.
        way = (used - governing.slow_from) / max(governing.stop_at - governing.slow_from, 1e-9)
        most = max(1, math.ceil(room * (1.0 - min(way, 1.0))))
        until = resets_at + AFTER_RESET if resets_at is not None else None
        return Throttle(stance=ThrottleState.SLOW, most=most, apart=APART, until=until, why=_words(limit))
    return OPEN


def _words(limit: ProviderLimit) -> str:
    span = f" of {limit.span}" if limit.span else ""
    used = f"{limit.utilization:.0%}{span} is used" if limit.utilization is not None else "it refuses to serve"
    return f"{limit.provider}: {used}"
