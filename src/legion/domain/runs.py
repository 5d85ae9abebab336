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
    """The program ended by itself and reports that it is finished. Only a claim."""
    FAILED = "failed"
    """The program ended with an error."""
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    """Legion stopped it on request."""
    LOST = "lost"
    """Its runner died without a result (power cut, kill -9)."""
    NOT_STARTED = "not_started"
    """The program could not be started at all."""
    GAVE_UP = "gave_up"
    """The agent reports that it cannot do this, and why."""
    INTERRUPTED = "interrupted"
    """A person interrupted it; its conversation can be resumed."""
    LIMITED = "limited"
    """The provider's usage limit or overload. Never a failure."""
    OUT_OF_BUDGET = "out_of_budget"
    """Its budget is spent."""
    REFUSED = "refused"
    """The provider refused to serve it: key, model or access."""


_SEAT = re.compile(r"(ticket|agent|plan)-(\d+)(?:-([a-z][a-z0-9_-]*))?")
PLANNER = "planner"
"""The role of a plan's runs."""
MOST_GENERATIONS = 10
"""How often one attempt may be lost before a person is asked."""


@dataclass(frozen=True, kw_only=True)
class Run:
    id: int
    project: int
    ticket: int | None = None
    agent: int | None = None
    """The number of the standing agent whose turn it is; a run belongs to a ticket, an agent or a plan."""
    plan: int | None = None
    """The plan whose planner it is."""
    role: str = ""
    """The key of the run's stage; empty for the builder and for a standing agent."""
    part: RolePart = RolePart.BUILD
    attempt: int = 1
    generation: int = 1
    started_at: float
    ended_at: float | None = None
    outcome: Outcome | None = None
    detail: str = ""
    saved: str | None = None
    """The commit that holds what the run left in its tree."""
    conversation: str = ""
    """The agent program's resumable session, if it has one. Runs share it until fresh eyes start another."""
    access: str = ""
    """How it reaches its model, for people: the provider's name, or the person's own login."""
    driver: str = ""
    """The name of the driver, as tickets and settings name it; empty before the run is prepared."""
    machine: str = ""
    """The machine that it was placed on; empty: the head itself."""
    prompt: str = ""
    """The name of the prompt that starts an agent's turn: the transcript shows by it whether the prompt was delivered.
    """

    @property
    def seat(self) -> str:
        """The ticket, agent or plan that it works for: the name of its worktree, temp folder and state folder."""
        if self.plan is not None:
            return plan_seat(self.plan)
        return ticket_seat(self.ticket, self.role) if self.ticket is not None else agent_seat(self.agent or 0)

    @property
    def name(self) -> str:
        """The name of its folder; never reused."""
        return f"{self.seat}-run-{self.id}"


def ticket_seat(ticket: int, role: str = "") -> str:
    return f"ticket-{ticket}-{role}" if role else f"ticket-{ticket}"


def seated(seat: str) -> tuple[str, int, str] | None:
    """Parses a seat: `ticket`, `agent` or `plan`, its number, and the role; None for any other name."""
    found = _SEAT.fullmatch(seat)
    return (found[1], int(found[2]), found[3] or "") if found else None


def agent_seat(agent: int) -> str:
    return f"agent-{agent}"


def plan_seat(plan: int) -> str:
    return f"plan-{plan}"
