"""Shapes of the costs and the results of work."""

from __future__ import annotations

from legion.wire.lazy import dataclass
from legion.wire.tickets import TicketLine, UsageLine


@dataclass(kw_only=True)
class UsageShare:
    """What one ticket, agent, model, day or epic took; or all of them."""

    key: str
    """The ticket's number, the agent, the model, the day (UTC) or the epic. Empty where there is none."""
    title: str
    """The ticket's; else empty."""
    usage: UsageLine
    seconds: float
    """Of the clock, while its agents were at work."""
    runs: int
    landed: int
    """Tickets."""
    usd_per_landed: float | None
    """Null where none landed."""
    wasted: UsageLine
    """The part of `usage` that went into attempts that did not land."""
    wasted_seconds: float
    wasted_runs: int


@dataclass(kw_only=True)
class UsageReport:
    schema: str = "legion.usage/1"
    by: str
    project: str | None
    """Null: all projects."""
    total: UsageShare
    shares: list[UsageShare]
    since: str = ""
    """The first day that is counted, of UTC; empty: all time."""


@dataclass(kw_only=True)
class WorkSummary:
    """What came of the work since a moment."""

    schema: str = "legion.stretch/1"
    project: str
    since: float
    because: str
    """The reason why it starts there, as a sentence."""
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
