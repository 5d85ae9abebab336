"""Pieces that several pages show (a time, usage, a run, an event), and shapes filled from records by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TypeVar

from legion.domain.errors import BadInput
from legion.domain.events import Event
from legion.domain.runs import Run
from legion.domain.scheduling.usage import Usage
from legion.runner.journal import JournalEvent, read_tail
from legion.service.shared.event_text import event_text
from legion.wire.tickets import EventLine, RunLine, UsageLine

Shape = TypeVar("Shape")
_TAIL = 16 * 1024
"""Bytes. Every request for the board reads this much of every run; a journal entry about a retry takes a hundred."""
_ANSWERS = frozenset({"said", "thought", "called", "result"})


def lasting(seconds: float) -> str:
    """A time that has passed, as people say it: "40 s", "21 min", "3 h 05 min"."""
    if seconds < 120:
        return f"{max(0.0, seconds):.0f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"


def moment(until: float | None, now: float) -> str:
    """A time as people say it: "in 20 s", "at 14:30"; empty for None."""
    if until is None:
        return ""
    seconds = until - now
    if seconds < 1:
        return "now"
    if seconds < 90:
        return f"in {seconds:.0f} s"
    local = datetime.fromtimestamp(until).astimezone()
    if seconds < 5400:
        return f"in {seconds / 60:.0f} min, at {local:%H:%M}"
    return f"at {local:%H:%M}" if seconds < 64800 else f"on {local:%a %d %b at %H:%M}"


def usage_line(spent: Usage | None) -> UsageLine | None:
    """None if no request was counted."""
    return shaped(UsageLine, spent) if spent is not None and spent.requests else None


def run_line(run: Run, spent: Usage | None = None) -> RunLine:
    return shaped(RunLine, run, usage=usage_line(spent))


def event_line(event: Event, names: Mapping[int, str]) -> EventLine:
    project = names.get(event.project) if event.project is not None else None
    return shaped(EventLine, event, project=project, words=event_text(event))


def silence(run_dir: Path) -> str:
    """A short text if the model failed to answer since its last reply; else an empty one."""
    asked, why = 0, ""
    for event in reversed(read_tail(run_dir, _TAIL)):
        if event.kind in _ANSWERS:
            break
        if event.kind == "retry":
            asked += 1
            why = why or _why(event)
    if not asked:
        return ""
    times = "once" if asked == 1 else f"{asked} times"
    return f"the model does not answer{why}, asked {times}"


def _why(retry: JournalEvent) -> str:
    """The HTTP status, if there was an answer at all."""
    status = retry.facts.get("status")
    return f" ({status})" if isinstance(status, int) else ""


def shaped(shape: type[Shape], *records: object, **others: object) -> Shape:
    """A shape with `others`, and its remaining fields from the first record that has an attribute of that name.

    A field that no record has needs a default in the shape. Enums travel as their text, collections as lists.
    """
    make: Callable[..., Shape] = shape
    for field in fields(shape):  # type: ignore[arg-type]  # every shape is a dataclass
        if field.name not in others:
            record = next((one for one in records if hasattr(one, field.name)), None)
            if record is not None:
                others[field.name] = _plain(getattr(record, field.name))
    return make(**others)


def _plain(value: object) -> object:
    match value:
        case Enum():
            return value.value
        case frozenset():
            return sorted(value)
        case tuple():
            return list(value)
        case Mapping():
            return dict(value)
        case _:
            return value


DAY = 86_400.0


def start_of(day: str) -> float | None:
    """The first moment of a day; None for an empty text."""
    if not day:
        return None
    try:
        return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise BadInput(f"{day[:40]!r} is no day: write it like 2026-01-31.") from None


def end_of(day: str) -> float | None:
    """The first moment after a day; None for an empty text."""
    start = start_of(day)
    return None if start is None else start + DAY
