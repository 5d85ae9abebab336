"""The connection's state machine: connecting, live, slow, gone, back. Pure: time comes in with every step.

    connecting --answer--> live --a request waits for SLOW_AFTER--> slow --answer--> live
        live, slow, back --connection lost--> gone --answer--> back --BACK_SHOWN later--> live

A lost connection is retried after growing delays. A request that is still waiting never makes a dead daemon look alive:
only an answer does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

SLOW_AFTER = 0.8
"""Seconds after which a request without an answer shows."""
BACK_SHOWN = 3.0
"""Seconds for which a connection that returned is shown as such."""
QUIET = 3.0
"""Seconds without any answer after which the daemon is asked for a sign of life."""
_DELAYS = (0.25, 0.5, 1.0, 2.0)


class Phase(Enum):
    CONNECTING = "connecting"
    LIVE = "live"
    SLOW = "slow"
    GONE = "gone"
    BACK = "back"


@dataclass(frozen=True, kw_only=True)
class Connection:
    """What is known about the daemon. Every method returns the next state."""

    ever: bool = False
    """It has answered at least once."""
    lost_at: float | None = None
    why: str = ""
    """The daemon's or the system's sentence about the loss."""
    failures: int = 0
    back_at: float | None = None
    heard_at: float | None = None
    waiting: dict[int, float] = field(default_factory=dict)
    """When each request without an answer was sent."""

    def sent(self, request: int, now: float) -> Connection:
        return replace(self, waiting={**self.waiting, request: now})

    def answered(self, request: int, now: float) -> Connection:
        """Any answer counts, also a refusal."""
        back = now if self.lost_at is not None and self.ever else self.back_at
        return replace(self.without(request), ever=True, lost_at=None, why="", failures=0, back_at=back, heard_at=now)

    def lost(self, request: int | None, now: float, why: str) -> Connection:
        """The daemon ended, or nothing listens."""
        first = now if self.lost_at is None else self.lost_at
        return replace(self.without(request), lost_at=first, why=why, failures=self.failures + 1, back_at=None)

    def heard(self, now: float) -> Connection:
        """A sign of life without a request: an event, or a heartbeat between events."""
        return replace(self, heard_at=now)

    def without(self, request: int | None) -> Connection:
        """A request that no longer counts: it was answered, it failed, or its screen is gone."""
        return replace(self, waiting={one: at for one, at in self.waiting.items() if one != request})

    def phase(self, now: float) -> Phase:
        if self.lost_at is not None:
            return Phase.GONE if self.ever else Phase.CONNECTING
        if not self.ever:
            return Phase.CONNECTING
        if any(now - at >= SLOW_AFTER for at in self.waiting.values()):
            return Phase.SLOW
        if self.back_at is not None and now - self.back_at < BACK_SHOWN:
            return Phase.BACK
        return Phase.LIVE

    def retry_delay(self) -> float:
        """Seconds until the next try after a loss."""
        return _DELAYS[min(max(self.failures, 1), len(_DELAYS)) - 1]

    def needs_sign_of_life(self, now: float) -> bool:
        """Nothing is asked and nothing was received for a while: a daemon that hangs would look alive."""
        quiet = self.heard_at is None or now - self.heard_at >= QUIET
        return self.ever and self.lost_at is None and not self.waiting and quiet
