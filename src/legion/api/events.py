"""Events as they happen, as server-sent events. A reader that was cut off goes on from the last number it saw."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from legion.api.asking import BIGGEST, Asked, MaybeFolder, Number
from legion.api.late import LateRouter
from legion.api.ports import ServicePort
from legion.api.waiting import Waiters
from legion.wire.tickets import EventLine

HEARTBEAT = 15.0
"""Seconds between signs of life, so that both ends notice a dead line."""
AT_ONCE = 500

router = LateRouter(prefix="/v1", tag="events")


@router.get("/events", summary="Events after a number, then each as it happens (SSE)", response_class=StreamingResponse)
async def events(
    request: Request,
    service: Asked,
    after: Number = 0,
    cwd: MaybeFolder = None,
    ticket: Annotated[int | None, Query(ge=1, le=BIGGEST)] = None,
    last_event_id: Annotated[int | None, Header(ge=0, le=BIGGEST)] = None,
) -> StreamingResponse:
    start = after if last_event_id is None else last_event_id
    # A folder that is no project is an error answer, not a broken stream.
    await run_in_threadpool(service.events, start, 1, cwd, ticket)
    lines = stream(service, request.app.state.waiters, start, cwd, ticket, heartbeat=request.app.state.heartbeat)
    return StreamingResponse(lines, media_type="text/event-stream")


async def stream(
    service: ServicePort, waiters: Waiters, after: int, cwd: str | None, ticket: int | None, *, heartbeat: float
) -> AsyncIterator[str]:
    yield ": Legion's events\n\n"
    while True:
        every = await run_in_threadpool(service.events, after, AT_ONCE)
        if every:
            wanted = every
            if cwd is not None or ticket is not None:
                # The unfiltered numbers say how far we are; else events of others would wake us for ever.
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
