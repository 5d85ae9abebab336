"""Admission control: whether an agent may start now, and why not. Work that has started is never paused.

Provider limits, budgets, quiet hours, a minimum time between two starts, and a limit on tickets that wait for a person.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from legion.domain.rules import Rule
from legion.domain.scheduling.budgets import SpentBudget
from legion.domain.scheduling.throttle import OPEN, Throttle, ThrottleState
from legion.domain.text import count

StartCandidate = int | str
"""A ticket by its number; the next turn of a standing agent, or a planner, by its seat."""


@dataclass(frozen=True, kw_only=True)
class HoldReason:
    """Why a candidate that could start is held."""

    rule: Rule
    why: str
    until: float | None = None
    """When that may change by itself; None: after some event."""
    empty: SpentBudget | None = None
    """The spent budget, where that is the reason."""


@dataclass(frozen=True, kw_only=True)
class AdmissionState:
    """The settings, limits and budgets of one moment, as far as they decide which agents may start."""

    stagger: float = 0.0
    """Seconds between any two starts."""
    quiet_until: float | None = None
    """The end of the quiet hours; None outside of them."""
    waiting: int = 0
    """Tickets that wait for a person."""
    most_waiting: int = 0
    """0: no limit."""
    last_start: float | None = None
    """The latest start of the agents at work."""
    accounts: Mapping[StartCandidate, tuple[str, ...]] = field(default_factory=dict)
    """The providers that each candidate may use, first choice first. A candidate that needs no model is left out."""
    at_work: frozenset[StartCandidate] = frozenset()
    throttles: Mapping[str, Throttle] = field(default_factory=dict)
    """By account."""
    last_starts: Mapping[str, float] = field(default_factory=dict)
    """By account: the latest start of the agents at work."""
    over_budget: Mapping[StartCandidate, HoldReason] = field(default_factory=dict)
    """Candidates whose budget is spent."""

    def account_of(self, candidate: StartCandidate) -> str | None:
        """The account it would use now: its first that is not closed, else the one that opens first."""
        mine = self.accounts.get(candidate, ())
        closed = {
            name: throttle
            for name in mine
            if (throttle := self.throttles.get(name, OPEN)).stance is ThrottleState.CLOSED
        }
        still = [name for name in mine if name not in closed]
        return next(iter(still), None) or min(mine, key=lambda name: closed[name].until or math.inf, default=None)


class AdmissionRound:
    """Asked for one candidate after the other. Each start that it admits counts for those that follow."""

    def __init__(self, state: AdmissionState, now: float) -> None:
        self._state = state
        self._now = now
        self._last = state.last_start
        self._last_on = dict(state.last_starts)
        self._running = Counter(state.account_of(candidate) for candidate in state.at_work)

    def admit(self, candidate: StartCandidate, *, started: bool = False) -> HoldReason | None:
        """Why the candidate is held, or None: it starts. Of a `started` ticket only budgets and limits are asked."""
        state, account = self._state, self._state.account_of(candidate)
        hold = (None if started else self._general(candidate)) or state.over_budget.get(candidate)
        if hold is None and account is not None:
            throttle = state.throttles.get(account, OPEN)
            hold = _throttled(throttle, self._running[account], self._last_on.get(account), self._now)
        if hold is not None:
            return hold
        self._last = self._now
        if account is not None:
            self._last_on[account] = self._now
            self._running[account] += 1
        return None

    def _general(self, candidate: StartCandidate) -> HoldReason | None:
        state = self._state
        if state.quiet_until is not None and state.quiet_until > self._now:
            why = "waits for the end of the quiet hours"
            return HoldReason(rule=Rule.QUIET_HOURS, why=why, until=state.quiet_until)
        # A standing agent's turn is often the answer to a person, so it brings them nothing new to settle.
        if isinstance(candidate, int) and state.most_waiting and state.waiting >= state.most_waiting:
            many = count(state.waiting, "ticket waits", "tickets wait")
            return HoldReason(rule=Rule.PERSON_IS_BUSY, why=f"waits until you have settled others: {many} for you")
        return _staggered(state.stagger, self._last, self._now)


def _throttled(throttle: Throttle, running: int, last: float | None, now: float) -> HoldReason | None:
    if throttle.stance is ThrottleState.CLOSED:
        why = f"waits for the reset of the limit ({throttle.why})"
        return HoldReason(rule=Rule.GOVERNOR, why=why, until=throttle.until)
    if throttle.most is not None and running >= throttle.most:
        why = f"waits, because fewer agents run at once near the limit ({throttle.why})"
        return HoldReason(rule=Rule.GOVERNOR, why=why, until=throttle.until)
    return _staggered(throttle.apart, last, now)


def _staggered(seconds: float, last: float | None, now: float) -> HoldReason | None:
    # A last start in the future means that the clock was set back; the hold is no longer than usual.
    if last is None or not seconds or not 0 <= now - last < seconds:
        return None
    return HoldReason(rule=Rule.ONE_BY_ONE, why="starts in a moment, one after the other", until=last + seconds)
