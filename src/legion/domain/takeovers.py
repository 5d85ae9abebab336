"""Takeovers: a person takes over the conversation of an agent that works alone, or works with it from the start.

The request names the run that worked alone when the person asked. Only that run may be interrupted for them, and only
every other run opens in a terminal, so no run can be both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class TakeoverMode(Enum):
    WHEEL = "wheel"
    """A person takes over the conversation of an agent that works alone, and gives it back."""
    PERSON = "person"
    """A person works with the agent from the start, and submits the change. Nothing is checked before."""


class TakeoverStage(Enum):
    ASKED = "asked"
    CUT = "cut"
    """The run that works alone is being interrupted. Recorded before the interrupt is sent."""
    WITHDRAWN = "withdrawn"
    """The person gave up after that: the agent continues alone when the interrupted run has ended."""


@dataclass(frozen=True, kw_only=True)
class Takeover:
    ticket: int = 0
    """The ticket whose agent it is; 0: a standing agent."""
    agent: int = 0
    """The number of the standing agent."""
    mode: TakeoverMode = TakeoverMode.WHEEL
    submitted: bool = False
    """The person submitted the change: the next end of a run, or its next start, judges it."""
    accepts: bool = False
    """What the program's description names is accepted without a person."""
    owes: bool = False
    """A turn of the standing agent was interrupted for it, which continues afterwards."""
    alone: int | None = None
    """The run that worked alone when the person asked; None: there was none to interrupt."""
    stage: TakeoverStage = TakeoverStage.ASKED
    since: float = 0.0

    def opens(self, run: int) -> bool:
        """Whether this run is the person's, in a terminal."""
        return self.stage is not TakeoverStage.WITHDRAWN and run != self.alone

    def may_interrupt(self, run: int) -> bool:
        return self.stage is not TakeoverStage.WITHDRAWN and run == self.alone

    def doing(self, run: int) -> str:
        """What this run does for the person; "" where the agent works alone."""
        if self.opens(run):
            return "a person works with its agent"
        return "a person waits for a safe moment to take over" if self.may_interrupt(run) else ""
