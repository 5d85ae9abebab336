"""The stream of events, as server-sent events. A reader that was cut off resumes from the last number it read."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from legion.api import devices
from legion.api.long_polls import Waiters
from legion.api.routes import BIGGEST, caller_of
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import Service
from legion.wire.tickets import EventLine

HEARTBEAT = 15.0
"""Seconds between heartbeats, by which both ends notice a dead connection."""
AT_ONCE = 500

PATH = "/v1/events"
SUMMARY = "Events after a number, then each as it happens (SSE)"


async def events(
    request: Request,
    after: Annotated[int, Query(ge=0, le=BIGGEST)] = 0,
    cwd: Annotated[str | None, Query(min_length=1, description="any folder inside the project")] = None,
    ticket: Annotated[int | None, Query(ge=1, le=BIGGEST)] = None,
    last_event_id: Annotated[int | None, Header(ge=0, le=BIGGEST)] = None,
) -> StreamingResponse:
    callers: CallerRegistry = request.app.state.callers
    service = callers.acting(caller_of(request))
    start = after if last_event_id is None else last_event_id
    # A folder outside of any project gets an error answer, not a broken stream.
    await run_in_threadpool(service.events, start, 1, cwd, ticket)
    lines = stream(
        service,
        request.app.state.waiters,
        start,
        cwd,
        ticket,
        heartbeat=request.app.state.heartbeat,
        may_read=partial(devices.is_still_in, callers, request.scope),
    )
    return StreamingResponse(lines, media_type="text/event-stream")


async def stream(
    service: Service,
    waiters: Waiters,
    after: int,
    cwd: str | None,
    ticket: int | None,
    *,
    heartbeat: float,
    may_read: Callable[[], bool],
) -> AsyncIterator[str]:
    """`may_read` is asked before each part: revoking a device ends what it reads."""
    yield ": Legion's events\n\n"
    while await run_in_threadpool(may_read):
        every = await run_in_threadpool(service.events, after, AT_ONCE)
        if every:
            wanted = every
            if cwd is not None or ticket is not None:
                # Progress is counted in unfiltered numbers; else events that are filtered out would wake us forever.
                wanted = await run_in_threadpool(service.events, after, AT_ONCE, cwd, ticket)
            after = every[-1].n
            for event in wanted:
                if event.n <= after:
                    yield as_sse(event)
            continue
        began = time.monotonic()
        if not await waiters.run(partial(service.wait_for_event, after, heartbeat)):
            if time.monotonic() - began < heartbeat / 2:
                return
            yield ": still here\n\n"


def as_sse(event: EventLine) -> str:
    return f"id: {event.n}\nevent: {event.kind}\ndata: {json.dumps(vars(event))}\n\n"
