"""Leases: how long a machine may work without an answer of the head, and when the head gives its runs away.

No clock of one machine is ever compared with that of another. The machine counts from the moment at which it SENT the
last beat that was answered; the head counts from the moment at which it received one, which is later. So the machine
always stops before the head gives its runs to another place, however slow the network is and whatever the clocks show.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum

from legion.domain.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class LeaseTimes:
    """Seconds."""

    beat: float = 15.0
    """Between two beats of a machine."""
    quiet: float = 45.0
    """Without an answer for so long, a machine starts nothing new."""
    stop: float = 60.0
    """Without an answer for so long, a machine stops its agents."""
    reap: float = 90.0
    """Without a beat for so long, the head gives the machine's runs away."""

    def __post_init__(self) -> None:
        if not 0 < self.beat < self.quiet < self.stop < self.reap:
            raise BadInput(f"A lease needs beat < quiet < stop < reap, and these are {self}.")

    @classmethod
    def scaled(cls, reap: float) -> LeaseTimes:
        """The same proportions, with this time until runs are given away."""
        share = reap / cls.reap
        return cls(beat=cls.beat * share, quiet=cls.quiet * share, stop=cls.stop * share, reap=reap)


class LeasePhase(Enum):
    """What a machine may do."""

    FRESH = "fresh"
    QUIET = "quiet"
    """Its runs continue, and nothing new starts."""
    OVER = "over"
    """Its agents are stopped."""


def phase(*, sent: float, now: float, times: LeaseTimes) -> LeasePhase:
    """For a machine whose last answered beat was sent at `sent`, both by a clock that also counts a suspended system.

    A clock that went back proves nothing about the time that passed, so the lease is over.
    """
    silent = now - sent
    if silent < 0 or silent >= times.stop:
        return LeasePhase.OVER
    return LeasePhase.QUIET if silent >= times.quiet else LeasePhase.FRESH


class HeadLeases:
    """The head's side: which runs were not named in a beat for too long. It is given times of one monotonic clock.

    A `mark` is any value that changes with each beat that names the run, whichever head received it. A run that is seen
    for the first time counts as just named: a head that has just started knows nothing of the time before.
    """

    def __init__(self, times: LeaseTimes) -> None:
        self._times = times
        self._heard: dict[int, tuple[Hashable, float]] = {}

    def observe(self, marks: Mapping[int, Hashable], now: float) -> None:
        """The marks of all open runs, as the store has them now."""
        for run, mark in marks.items():
            known = self._heard.get(run)
            if known is None or known[0] != mark:
                self._heard[run] = (mark, now)
        for gone in self._heard.keys() - marks.keys():
            del self._heard[gone]

    def lapsed(self, now: float) -> frozenset[int]:
        return frozenset(one for one, (_, heard) in self._heard.items() if now - heard >= self._times.reap)
