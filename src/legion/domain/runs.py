"""A run: one attempt at a ticket, or one turn of a standing agent, and how it ended.

A lost run starts again as the next generation of the same attempt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from legion.domain.agents.teams import RolePart


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
    GAVE_UP = "gave_up"
    """The agent says that it cannot do this, and why."""
    INTERRUPTED = "interrupted"
    """A person interrupted it; its conversation can go on."""
    LIMITED = "limited"
    """The provider's usage limit or overload. Never a failure."""
    OUT_OF_BUDGET = "out_of_budget"
    """It spent what it was given."""
    REFUSED = "refused"
    """The provider would not serve it at all: key, model or access."""


_SEAT = re.compile(r"(ticket|agent)-(\d+)(?:-([a-z][a-z0-9_-]*))?")
MOST_GENERATIONS = 10
"""How often one attempt may be lost before somebody has to look."""


@dataclass(frozen=True, kw_only=True)
class Run:
    id: int
    project: int
    ticket: int | None = None
    agent: int | None = None
    """The number of the standing agent whose turn it is; a run is a ticket's or an agent's."""
    role: str = ""
    """The key of the stage whose run it is; empty for who builds, and for a standing agent."""
    part: RolePart = RolePart.BUILD
    attempt: int = 1
    generation: int = 1
    started_at: float
    ended_at: float | None = None
    outcome: Outcome | None = None
    detail: str = ""
    saved: str | None = None
    """The commit that holds what it left in its tree."""
    conversation: str = ""
    """The agent program's resumable session, where it has one. Runs share it until fresh eyes begin another."""
    access: str = ""
    """How it reaches its model, for people: the provider's name, or that it reads the person's own login."""
    prompt: str = ""
    """The name of the prompt that begins an agent's turn: its transcript tells by it what the agent has heard."""

    @property
    def seat(self) -> str:
        """Whose it is, as its worktree, its temp folder and its agent's state folder are called."""
        return ticket_seat(self.ticket, self.role) if self.ticket is not None else agent_seat(self.agent or 0)

    @property
    def name(self) -> str:
        """The name of its folder; never reused."""
        return f"{self.seat}-run-{self.id}"


def ticket_seat(ticket: int, role: str = "") -> str:
    return f"ticket-{ticket}-{role}" if role else f"ticket-{ticket}"


def seated(seat: str) -> tuple[str, int, str] | None:
    """What a seat says: `ticket` or `agent`, its number, and the role; None where it is no seat."""
    found = _SEAT.fullmatch(seat)
    return (found[1], int(found[2]), found[3] or "") if found else None


def agent_seat(agent: int) -> str:
    return f"agent-{agent}"
