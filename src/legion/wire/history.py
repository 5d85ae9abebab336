"""Shapes of `legion status events`: facts from events and journals."""

from __future__ import annotations

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class HistoryLine:
    """One fact, from the daemon's events or from the journal of a run."""

    at: float
    source: str
    """event or run."""
    n: int
    """The event's number, or the line of the run's journal."""
    kind: str
    project: str | None
    ticket: int | None
    run: int | None
    words: str
    """One line for people."""
    rule: str
    """The rule by which it was decided. Empty where nothing was."""
    why: str
    """The rule, explained."""
    data: dict[str, object]
    rewind: str = ""
    """The moment's name for `legion rewind N --to`, where the ticket can go back to it."""


@dataclass(kw_only=True)
class Events:
    schema: str = "legion.events/1"
    lines: list[HistoryLine]
    """Oldest first."""
    omitted: int
    """Older ones that are not listed."""
    cursor: str
    """Ask with it for what happened since."""
