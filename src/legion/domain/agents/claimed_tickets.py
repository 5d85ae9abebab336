"""A holding: a ticket that a standing agent has claimed from the board, until it lands or goes to somebody else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ClaimedTicket:
    ticket: int
    number: int
    """Counts all claims: the tree that is planted for this one carries it."""
    agent: str
    planted: bool
    """The agent's worktree stands on the ticket's ground."""
    submitted: bool
    """The agent says that it is through: the end of its turn judges the tree."""
    since: float
