"""Who of those that could begin begins now, and why the others do not. What was begun always goes on.

Governors, budgets, quiet hours, a pause between two beginnings, and a limit on how many may wait for a person.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from legion.domain.rules import Rule
from legion.domain.scheduling.budgets import SpentBudget
from legion.domain.scheduling.throttle import OPEN, Throttle, ThrottleState

StartCandidate = int | str
"""Who may begin: a ticket by its number, or a standing agent with its next turn by its seat."""


@dataclass(frozen=True, kw_only=True)
class HoldReason:
    """Why somebody does not begin though they could."""

    rule: Rule
    why: str
    until: float | None = None
    """When that may change by itself; None: when something happens."""
    empty: SpentBudget | None = None
    """The budget that is spent, where that is why."""


@dataclass(frozen=True, kw_only=True)
class AdmissionState:
    """The present, as far as it says when work may begin."""

    stagger: float = 0.0
    """Seconds between any two beginnings."""
    quiet_until: float | None = None
    """The end of the quiet hours; None outside of them."""
    waiting: int = 0
    """Tickets that wait for a person."""
    most_waiting: int = 0
    """0: as many as there are."""
    last_start: float | None = None
    """When the last of those at work began."""
    accounts: Mapping[StartCandidate, tuple[str, ...]] = field(default_factory=dict)
    """Whose limits each of them meets: the provider that it asks, and those that are asked instead, in their order. Who
    needs no model is not in it."""
    at_work: frozenset[StartCandidate] = frozenset()
    readings: Mapping[str, Throttle] = field(default_factory=dict)
    last_starts: Mapping[str, float] = field(default_factory=dict)
    """By account: when the last of those at work began."""
    broke: Mapping[StartCandidate, HoldReason] = field(default_factory=dict)
    """Whose budget is spent."""

    def serving(self, who: StartCandidate) -> str | None:
        """The account that it would use now: the first that is not at its limit, else the one that is open first."""
        mine = self.accounts.get(who, ())
        closed = {
            name: reading for name in mine if (reading := self.readings.get(name, OPEN)).stance is ThrottleState.CLOSED
        }
        still = [name for name in mine if name not in closed]
        return next(iter(still), None) or min(mine, key=lambda name: closed[name].until or math.inf, default=None)


@dataclass(frozen=True, kw_only=True)
class Admitted:
    begun: tuple[StartCandidate, ...]
    held: Mapping[StartCandidate, HoldReason]

    @property
    def wake_at(self) -> float | None:
        return min((hold.until for hold in self.held.values() if hold.until is not None), default=None)


def admit(
    rhythm: AdmissionState,
    wanted: Sequence[StartCandidate],
    now: float,
    *,
    in_hand: Collection[StartCandidate] = frozenset(),
) -> Admitted:
    """Of those that could begin, in this order, those that do. Whose work goes on with it is `in_hand`: nothing new for
    anybody, so that only money and limits hold it."""
    last, last_on = rhythm.last_start, dict(rhythm.last_starts)
    running = Counter(rhythm.serving(who) for who in rhythm.at_work)
    begun: list[StartCandidate] = []
    held: dict[StartCandidate, HoldReason] = {}
    for who in wanted:
        account = rhythm.serving(who)
        hold = (None if who in in_hand else _general(rhythm, who, last, now)) or rhythm.broke.get(who)
        if hold is None and account is not None:
            reading = rhythm.readings.get(account, OPEN)
            hold = _governed(reading, running[account], last_on.get(account), now)
        if hold is not None:
            held[who] = hold
            continue
        begun.append(who)
        last = now
        if account is not None:
            last_on[account] = now
            running[account] += 1
    return Admitted(begun=tuple(begun), held=held)


def _general(rhythm: AdmissionState, who: StartCandidate, last: float | None, now: float) -> HoldReason | None:
    if rhythm.quiet_until is not None and rhythm.quiet_until > now:
        return HoldReason(rule=Rule.QUIET_HOURS, why="waits for the end of the quiet hours", until=rhythm.quiet_until)
    # A turn of a standing agent is often the answer to a person, and nothing new for them.
    if isinstance(who, int) and rhythm.most_waiting and rhythm.waiting >= rhythm.most_waiting:
        many = "1 ticket waits" if rhythm.waiting == 1 else f"{rhythm.waiting} tickets wait"
        return HoldReason(rule=Rule.PERSON_IS_BUSY, why=f"waits until you have settled others: {many} for you")
    return _apart(rhythm.stagger, last, now)


def _governed(reading: Throttle, running: int, last: float | None, now: float) -> HoldReason | None:
    if reading.stance is ThrottleState.CLOSED:
        return HoldReason(
            rule=Rule.GOVERNOR, why=f"waits for the reset of the limit ({reading.why})", until=reading.until
        )
    if reading.most is not None and running >= reading.most:
        why = f"waits, because fewer work at once near the limit ({reading.why})"
        return HoldReason(rule=Rule.GOVERNOR, why=why, until=reading.until)
    return _apart(reading.apart, last, now)


def _apart(seconds: float, last: float | None, now: float) -> HoldReason | None:
    # A last start in the future is a clock that was set back; it holds nobody for longer than usual.
    if last is None or not seconds or not 0 <= now - last < seconds:
        return None
    return HoldReason(rule=Rule.ONE_BY_ONE, why="begins in a moment, one after the other", until=last + seconds)
