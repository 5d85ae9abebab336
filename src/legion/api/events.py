"""The stream of events, as server-sent events. A reader that was cut off resumes from the last number it read.

Each stream holds a thread, and each event is read from the database for it, so a caller has only so many streams.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from legion.api import devices
from legion.api.problems import answer
from legion.api.quota import Quota, QuotaFull
from legion.api.routes import BIGGEST, FOLDER, caller_of, refuse_unusable
from legion.domain.text import to_json
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import Service
from legion.wire.tickets import EventLine

HEARTBEAT = 15.0
"""Seconds between heartbeats, by which both ends notice a dead connection."""
AT_ONCE = 500
MOST_STREAMS = 50
"""Open streams of all callers together; the person may have all of them."""

Wait = Callable[[Callable[[], bool]], Awaitable[bool]]
"""Runs a blocking call in a thread of the caller's."""

PATH = "/v1/events"
SUMMARY = "Events after a number, then each as it happens (SSE)"


class _EventResponse(StreamingResponse):
    """Closes the stream of its caller however it ends, also before its first line."""

    def __init__(self, lines: AsyncIterator[str], streams: Quota, caller: str) -> None:
        super().__init__(lines, media_type="text/event-stream")
        self._streams, self._caller = streams, caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.give_back(self._caller)


async def events(
    request: Request,
    after: Annotated[int, Query(ge=0, le=BIGGEST)] = 0,
    cwd: Annotated[FOLDER | None, Query()] = None,
    ticket: Annotated[int | None, Query(ge=1, le=BIGGEST)] = None,
    last_event_id: Annotated[int | None, Header(ge=0, le=BIGGEST)] = None,
) -> Response:
    callers: CallerRegistry = request.app.state.callers
    caller = caller_of(request)
    service = callers.acting(caller)
    refuse_unusable(cwd, "cwd")
    start = after if last_event_id is None else last_event_id
    # A folder outside of any project gets an error answer, not a broken stream.
    await run_in_threadpool(service.events, start, 1, cwd, ticket)
    streams: Quota = request.app.state.streams
    try:
        streams.take(caller.id)
    except QuotaFull as full:
        return answer(full, full.status)
    lines = stream(
        service,
        partial(request.app.state.stream_waiters.run, caller.id),
        start,
        cwd,
        ticket,
        heartbeat=request.app.state.heartbeat,
        may_read=partial(devices.is_still_in, callers, request.scope),
    )
    return _EventResponse(lines, streams, caller.id)


async def stream(
    service: Service,
    wait: Wait,
    after: int,
    cwd: str | None,
    ticket: int | None,
    *,
    heartbeat: float,
    may_read: Callable[[], bool],
) -> AsyncIterator[str]:
    """The events as text: each as one server-sent event, and a comment as the sign of life."""
    yield ": Legion's events\n\n"
    async for part in batches(service, wait, after, cwd, ticket, heartbeat=heartbeat, may_read=may_read):
        for event in part:
            yield as_sse(event)
        if not part:
            yield ": still here\n\n"


async def batches(
    service: Service,
    wait: Wait,
    after: int,
    cwd: str | None = None,
    ticket: int | None = None,
    *,
    heartbeat: float,
    may_read: Callable[[], bool],
) -> AsyncIterator[list[EventLine]]:
    """Events after a number, as they happen; an empty list is a sign of life.

    `may_read` is asked before each part: revoking a device ends what it reads.
    """
    while await run_in_threadpool(may_read):
        every = await run_in_threadpool(service.events, after, AT_ONCE)
        if every:
            wanted = every
            if cwd is not None or ticket is not None:
                # Progress is counted in unfiltered numbers; else events that are filtered out would wake us forever.
                wanted = await run_in_threadpool(service.events, after, AT_ONCE, cwd, ticket)
            after = every[-1].n
            if part := [event for event in wanted if event.n <= after]:
                yield part
            continue
        began = time.monotonic()
        if not await wait(partial(service.wait_for_event, after, heartbeat)):
            if time.monotonic() - began < heartbeat / 2:
                return
            yield []


def as_sse(event: EventLine) -> str:
    return f"id: {event.n}\nevent: {event.kind}\ndata: {to_json(vars(event))}\n\n"
