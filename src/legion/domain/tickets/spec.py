"""What a person asks for with a ticket."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from legion.domain.tickets.evidence import Bound

MOST_BUDGET = 100_000
"""Dollars; a larger figure is a typing error."""


class ReviewPolicy(Enum):
    """When an independent reviewer reads a change, beside the readers of the ticket's own team."""

    OFF = "off"
    RISKY = "risky"
    """Where it looks risky."""
    ALWAYS = "always"


@dataclass(frozen=True, kw_only=True)
class TicketSpec:
    """What a person asks for. It never changes after dispatch, but that a red checkpoint also comes after its fix."""

    title: str
    text: str
    context: str = ""
    criteria: str = ""
    plan: str = ""
    after: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    """Globs that the change may touch, protected paths included."""
    proofs: tuple[str, ...] = ()
    """Commands that prove this ticket; each needs a green receipt."""
    bound: tuple[Bound, ...] = ()
    """Which criterion is proven by what."""
    acceptance: tuple[str, ...] = ()
    """Names of the person's held-out acceptance that it has to pass; its agent never hears of them."""
    checkpoint: bool = False
    epic: str = ""
    priority: int = 0
    """Higher goes first."""
    driver: str = ""
    """Empty: the project's default."""
    command: str = ""
    model: str = ""
    max_attempts: int = 5
    climbs: bool = False
    """Whether the ladder goes on where the attempts end: not for a plain program, nor where a person said how many."""
    asks: bool = False
    """Whether its agent may ask a person for what it is not allowed to do; else that is denied."""
    budget: float | None = None
    """Dollars that all its runs may cost together; None: as the person's settings say."""
    dispatcher: str = ""
    """The agent that asked for it; empty for a person. It gives no more than it has itself."""
    tools: tuple[str, ...] | None = None
    """The only tools that its agent has; None: as the person's settings say."""
    review: ReviewPolicy | None = None
    """Whether an independent reviewer reads its change; None: as the project says."""
    undoes: int | None = None
    """The landed ticket that it takes back. It needs no agent: we make the change ourselves."""
    team: str = ""
    """The name of the team that works on it; empty where no agent does."""
    crew: str = ""
    """The team as it was at dispatch, by the digest of what is kept of it; empty: one plain agent."""
    labels: tuple[str, ...] = ()
