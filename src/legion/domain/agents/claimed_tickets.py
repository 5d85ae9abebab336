"""A ticket that a standing agent has claimed from the board, until it lands or is released."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ClaimedTicket:
    ticket: int
    number: int
    """Counts all claims: the start tree made for this one carries the number."""
    agent: str
    planted: bool
    """The agent's worktree has the ticket's start tree."""
    submitted: bool
    """The agent reports that it is finished: the end of its turn judges the tree."""
    since: float
