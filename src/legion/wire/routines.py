"""Shapes of requests and answers about routines: tickets that start by time or event."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class AddRoutine:
    cwd: str
    starts: str
    """`every weekday 07:00`, `every 2 hours`, `on target-red`, `on failed-twice` or `on tag v*`."""
    what: str
    """The name of a template, or the text of one ticket."""
    values: dict[str, str] = field(default_factory=dict)
    """Variables of the template."""
    team: str = ""
    budget: float | None = None
    """Dollars of the ticket; of each one that a template has."""


@dataclass(kw_only=True)
class OfRoutine:
    cwd: str


@dataclass(kw_only=True)
class RoutineLine:
    id: int
    starts: str
    template: str
    """Empty: it dispatches one ticket with `text`."""
    text: str
    values: dict[str, str]
    team: str
    budget: float | None
    due_at: float | None
    """The next start; null where an event starts it."""
    last_at: float | None
    last_result: str
    last_tickets: list[int]
    runs: int


@dataclass(kw_only=True)
class Routines:
    schema: str = "legion.routines/1"
    routines: list[RoutineLine]
