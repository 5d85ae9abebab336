"""A wheel: a person takes over the conversation of an agent that works alone, and gives it back.

The request names the run that worked alone when the person asked. Only that run may be interrupted for them, and only
every other run opens in a terminal, so no run can be both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class WheelStage(Enum):
    ASKED = "asked"
    CUT = "cut"
    """The run that works alone is being interrupted. Recorded before the interrupt is sent."""
    WITHDRAWN = "withdrawn"
    """The person gave up after that: the agent continues alone when the interrupted run has ended."""


@dataclass(frozen=True, kw_only=True)
class Wheel:
    alone: int | None = None
    """The run that worked alone when the person asked; None: there was none to interrupt."""
    stage: WheelStage = WheelStage.ASKED
    since: float = 0.0

    def opens(self, run: int) -> bool:
        """Whether this run is the person's, in a terminal."""
        return self.stage is not WheelStage.WITHDRAWN and run != self.alone

    def may_interrupt(self, run: int) -> bool:
        return self.stage is not WheelStage.WITHDRAWN and run == self.alone


@dataclass(frozen=True, kw_only=True)
class AgentWheel(Wheel):
    """Of a standing agent."""

    agent: int
    owes: bool
    """A turn of the agent was interrupted for it, which continues afterwards."""
