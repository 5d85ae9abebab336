"""A routine: what starts it, the ticket or template that it starts, and why it does not start now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from legion.domain.events import Event, EventKind
from legion.domain.routines.schedule import OnEvent, Schedule, Trigger, parse

MOST = 100
"""Routines of one project."""
LONGEST = 20_000
"""Characters of a routine's text."""


@dataclass(frozen=True, kw_only=True)
class Routine:
    id: int
    project: int
    version: int = 1
    starts: str
    """As the person wrote it."""
    template: str = ""
    """Empty: it dispatches one ticket with `text`."""
    text: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the template."""
    team: str = ""
    budget: float | None = None
    created_at: float = 0.0
    removed_at: float | None = None
    due_at: float | None = None
    """The next start by time."""
    seen: int = 0
    """The last event that was read for it."""
    tags: tuple[str, ...] = ()
    """Tags that are not new."""
    last_tickets: tuple[int, ...] = ()
    last_at: float | None = None
    last_result: str = ""
    runs: int = 0

    @property
    def name(self) -> str:
        return f"R{self.id}"

    @property
    def schedule(self) -> Schedule:
        return parse(self.starts)


@dataclass(frozen=True, kw_only=True)
class FailedCount:
    """How many attempts of a ticket have failed up to an event."""

    ticket: int
    failures: int


def reason(
    routine: Routine, events: Iterable[Event], failures: Sequence[FailedCount], new_tags: Collection[str]
) -> str:
    """Why events start it; empty: they do not. Its own tickets never do."""
    schedule = routine.schedule
    if not isinstance(schedule, OnEvent):
        return ""
    if schedule.trigger is Trigger.TARGET_RED:
        red = [event for event in events if event.kind is EventKind.BASELINE_RED]
        return "the target fails its checks" if red else ""
    if schedule.trigger is Trigger.TAG:
        found = sorted(tag for tag in new_tags if fnmatchcase(tag, schedule.tags))
        return f"new tags: {', '.join(found[:5])}" if found else ""
    twice = [one.ticket for one in failures if one.failures >= 2 and one.ticket not in routine.last_tickets]
    return f"two attempts of ticket {twice[-1]} failed" if twice else ""


def is_failed_attempt(event: Event) -> bool:
    return event.kind is EventKind.TICKET_MOVED and bool(event.data.get("cause"))
