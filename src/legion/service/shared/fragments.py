"""Pieces that several pages show: a time, usage, a run, an event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from legion.domain.events import Event
from legion.domain.runs import Run
from legion.domain.scheduling.usage import Usage
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
    if spent is None or not spent.requests:
        return None
    return UsageLine(
        requests=spent.requests,
        failed=spent.failed,
        input=spent.input,
        output=spent.output,
        cache_read=spent.cache_read,
        cache_write=spent.cache_write,
        usd=spent.usd,
        unpriced=spent.unpriced,
    )


def run_line(run: Run, spent: Usage | None = None) -> RunLine:
    return RunLine(
        id=run.id,
        attempt=run.attempt,
        generation=run.generation,
        started_at=run.started_at,
        ended_at=run.ended_at,
        outcome=run.outcome.value if run.outcome else None,
        detail=run.detail,
        saved=run.saved,
        access=run.access,
        role=run.role,
        usage=usage_line(spent),
    )


def event_line(event: Event, names: Mapping[int, str]) -> EventLine:
    return EventLine(
        n=event.n,
        at=event.at,
        kind=event.kind.value,
        project=names.get(event.project) if event.project is not None else None,
        ticket=event.ticket,
        data=dict(event.data),
    )
