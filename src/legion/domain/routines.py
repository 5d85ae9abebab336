"""Routines: what starts each, what it starts, and its schedule (`every weekday 07:00`). Times are of a given zone.

A time of day that the clock skips in spring comes later by what was skipped; one that it repeats in autumn counts once,
the first time. Times that were missed, because the daemon was down or the clock was set forward, are one start.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import Enum
from fnmatch import fnmatchcase

from legion.domain.errors import BadInput
from legion.domain.events import Event, EventKind

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SETS = {"day": DAYS, "weekday": DAYS[:5], "weekend": DAYS[5:]}
_UNITS = {"minute": 60.0, "hour": 3600.0}
_LEAST = 300.0
"""Seconds of an interval: a ticket takes longer."""
_MOST = 31 * 86_400.0
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_TAG = re.compile(r"[\w./*?\[\]-]{1,100}")


class Trigger(Enum):
    """Events that start a routine."""

    TARGET_RED = "target-red"
    """The target itself fails a check."""
    FAILED_TWICE = "failed-twice"
    """Two attempts of a ticket failed."""
    TAG = "tag"
    """The person's repository has a new tag."""


@dataclass(frozen=True, kw_only=True)
class AtTime:
    days: tuple[int, ...]
    """0 is Monday."""
    clock: time


@dataclass(frozen=True, kw_only=True)
class AtInterval:
    seconds: float


@dataclass(frozen=True, kw_only=True)
class OnEvent:
    trigger: Trigger
    tags: str = "*"
    """A pattern over tags."""


Schedule = AtTime | AtInterval | OnEvent


def parse(text: str) -> Schedule:
    """Raises BadInput with the forms that there are."""
    words = text.strip().lower().split()
    match words:
        case ["every", days, clock] if (found := _clock(clock)) is not None:
            return AtTime(days=_days(days, text), clock=found)
        case ["every", unit] if unit in _UNITS:
            return _interval(1, unit, text)
        case ["every", number, unit] if number.isdecimal() and unit.removesuffix("s") in _UNITS:
            return _interval(int(number), unit.removesuffix("s"), text)
        case ["on", Trigger.TAG.value, pattern] if _TAG.fullmatch(pattern):
            # Tags have capitals.
            return OnEvent(trigger=Trigger.TAG, tags=text.split()[-1])
        case ["on", trigger] if trigger in {one.value for one in Trigger}:
            return OnEvent(trigger=Trigger(trigger))
    raise _unknown(text)


def next_after(schedule: AtTime | AtInterval, moment: float, zone: tzinfo) -> float:
    """The first start after a moment, both in seconds since 1970."""
    if isinstance(schedule, AtInterval):
        return moment + schedule.seconds
    today = datetime.fromtimestamp(moment, zone).date()
    # A week has every day; the eighth is needed where today's time has passed.
    for ahead in range(9):
        day = today + timedelta(days=ahead)
        if day.weekday() in schedule.days:
            start = datetime.combine(day, schedule.clock, zone).astimezone(UTC).timestamp()
            if start > moment:
                return start
    raise AssertionError("a schedule has at least one day")


@dataclass(frozen=True, kw_only=True)
class Due:
    starts: bool
    at: float
    """The next start after this moment."""


def due(schedule: AtTime | AtInterval, planned: float, now: float, zone: tzinfo) -> Due:
    """Whether the planned start has come, however long ago, and the next one.

    Where the clock was set back, the next start is one of the new time, not of the old.
    """
    following = next_after(schedule, now, zone)
    if now >= planned:
        return Due(starts=True, at=following)
    return Due(starts=False, at=min(planned, following))


def _clock(word: str) -> time | None:
    found = _CLOCK.fullmatch(word)
    return time(int(found[1]), int(found[2])) if found else None


def _days(word: str, text: str) -> tuple[int, ...]:
    names = _SETS.get(word) or tuple(word.split(","))
    if not all(name in DAYS for name in names):
        raise _unknown(text)
    return tuple(sorted({DAYS.index(name) for name in names}))


def _interval(number: int, unit: str, text: str) -> AtInterval:
    seconds = number * _UNITS[unit]
    if not _LEAST <= seconds <= _MOST:
        raise BadInput(f"{text[:60]!r}: an interval has 5 minutes to 31 days.")
    return AtInterval(seconds=seconds)


def _unknown(text: str) -> BadInput:
    return BadInput(
        f"{text[:60]!r} is no time: write 'every weekday 07:00', 'every monday,thursday 9:30', 'every 2 hours', "
        "'on target-red', 'on failed-twice' or 'on tag v*'."
    )


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
