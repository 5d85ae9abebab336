"""Pieces that several pages show: a time, usage, a run, an event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from legion.domain.events import Event
from legion.domain.runs import Run
from legion.domain.scheduling.usage import Usage
from legion.service.shared.shapes import shaped
from legion.wire.tickets import EventLine, RunLine, UsageLine


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
    return shaped(EventLine, event, project=names.get(event.project) if event.project is not None else None)
