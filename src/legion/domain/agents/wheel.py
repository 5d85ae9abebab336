"""A wheel: a person takes over the conversation of a standing agent, and gives it back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AgentWheel:
    agent: int
    owes: bool
    """A turn of the agent was interrupted for it, which continues afterwards."""
    since: float = 0.0
