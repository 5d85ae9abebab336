"""A run: one attempt by one agent, and how it ended.

A lost run starts again as the next generation of the same attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    FINISHED = "finished"
    """The program ended by itself and says it is through. Only a claim."""
    FAILED = "failed"
    """The program ended with an error."""
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    """We stopped it on request."""
    LOST = "lost"
    """Its runner died without a word (power cut, kill -9)."""
    NOT_STARTED = "not_started"
    """The program could not be started at all."""


MOST_GENERATIONS = 10
"""How often one attempt may be lost before somebody has to look."""


@dataclass(frozen=True, kw_only=True)
class Run:
    id: int
    ticket: int
    attempt: int
    generation: int
    started_at: float
    ended_at: float | None = None
    outcome: Outcome | None = None
    detail: str = ""
    saved: str | None = None
    """The commit that holds what it left in its tree."""

    @property
    def name(self) -> str:
        """The name of its folder; never reused."""
        return f"ticket-{self.ticket}-run-{self.id}"
