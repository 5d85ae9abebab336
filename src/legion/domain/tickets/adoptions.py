"""An adoption: a ticket that continues a conversation of the person's own agent program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Adoption:
    ticket: int
    at: float
    conversation: str
    """The ticket's own, which starts as a copy."""
    source: str
    """The person's."""
