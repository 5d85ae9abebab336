"""What work costs, on the wire."""

from __future__ import annotations

from dataclasses import dataclass

from legion.wire.tickets import UsageLine


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
