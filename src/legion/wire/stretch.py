"""A stretch of work on the wire."""

from __future__ import annotations

from dataclasses import dataclass

from legion.wire.tickets import TicketLine
from legion.wire.usage import UsageShare


@dataclass(kw_only=True)
class WorkSummary:
    """What came of the work since a moment."""

    schema: str = "legion.stretch/1"
    project: str
    since: float
    because: str
    """Why it begins there, in words."""
    landed: list[TicketLine]
    failed: list[TicketLine]
    stopped: list[TicketLine]
    waiting: list[TicketLine]
    """Those that wait for the person."""
    open: int
    """Tickets that have not ended."""
    to_collect: int
    """Landed commits that the person's branch lacks."""
    usage: UsageShare
    sent_back: int
    """Attempts that did not make it."""
    conflicts: int
    """Those of them that conflicted."""
