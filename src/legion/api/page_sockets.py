"""The WebSockets of the page: one sends events, one answers requests for output.

A browser has six connections to an address for all its windows, and counts no WebSocket among them. So what waits for
something to happen waits in a WebSocket, and any number of windows can be open.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import cache, partial

from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter, ValidationError
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from legion.api import devices
from legion.api.events import batches
from legion.api.long_polls import Waiters
from legion.api.quota import Quota, QuotaFull
from legion.api.route_table import CALLER, GuardedRoute
from legion.api.routes import BIGGEST, refuse_unknown_fields, refuse_unstorable
from legion.domain.text import to_json
from legion.service.entry.callers import CallerRegistry
from legion.wire.errors import LegionError
from legion.wire.history import FollowOutput, LiveOutput
from legion.wire.operations import OPERATIONS
from legion.wire.table import LONGEST_WAIT, OpenTo
from legion.wire.tickets import EventLine

EVENTS, OUTPUT = "/ws/events", "/ws/output"
_POLICY, _TRY_LATER = 1008, 1013
_OUTPUT = OPERATIONS["output"]


async def events(socket: WebSocket) -> None:
    """Send a list of events at once, after every change, and an empty one as a sign of life."""
    given = socket.query_params.get("after", "0")
    if not given.isdecimal() or len(given) > len(str(BIGGEST)) or int(given) > BIGGEST:
        await socket.close(_POLICY)
        return
    async with _counted(socket) as may_open:
        if not may_open:
            await socket.close(_TRY_LATER)
            return
        await socket.accept()
        await socket.send_text("[]")
        await _send_until_closed(socket, _batches(socket, int(given)))


def _batches(socket: WebSocket, after: int) -> AsyncIterator[list[EventLine]]:
    state = socket.app.state
    callers: CallerRegistry = state.callers
    return batches(
        callers.acting(socket.scope[CALLER]),
        partial(state.stream_waiters.run, socket.scope[CALLER].id),
        after,
        heartbeat=state.heartbeat,
        may_read=partial(devices.is_still_in, callers, socket.scope),
    )


async def _send_until_closed(socket: WebSocket, parts: AsyncIterator[list[EventLine]]) -> None:
    leaving = asyncio.ensure_future(_until_closed(socket))
    try:
        while True:
            part = asyncio.ensure_future(anext(parts, None))
            await asyncio.wait([leaving, part], return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                part.cancel()
                return
            if (found := part.result()) is None:
                await socket.close(_POLICY)
                return
            await socket.send_text(to_json([vars(event) for event in found]))
    finally:
        leaving.cancel()


async def _until_closed(socket: WebSocket) -> None:
    """Whatever the client sends is left unread."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


@asynccontextmanager
async def _counted(socket: WebSocket) -> AsyncIterator[bool]:
    """Count the stream of the caller while the block runs; False: the caller has as many as it may."""
    streams: Quota = socket.app.state.streams
    caller, may_open = socket.scope[CALLER].id, False
    try:
        with suppress(QuotaFull):
            streams.take(caller)
            may_open = True
        yield may_open
    except (WebSocketDisconnect, RuntimeError):
        # The browser left in the middle of a message.
        pass
    finally:
        if may_open:
            streams.give_back(caller)


async def output(socket: WebSocket) -> None:
    """Answer each FollowOutput with a LiveOutput, when something was printed or the time is up."""
    callers: CallerRegistry = socket.app.state.callers
    waiters: Waiters = socket.app.state.waiters
    caller = socket.scope[CALLER]
    still_in = partial(devices.is_still_in, callers, socket.scope)
    try:
        await socket.accept()
        while True:
            wanted = _shape().validate_json(await socket.receive_text())
            refuse_unstorable(_OUTPUT, {"wanted": wanted})
            given = {"wanted": wanted, "timeout": LONGEST_WAIT}
            found: LiveOutput = await waiters.run(caller.id, partial(callers.perform, caller, _OUTPUT, given))
            if not await run_in_threadpool(still_in):
                break
            await socket.send_text(to_json(asdict(found)))
        await socket.close(_POLICY)
    except (ValidationError, LegionError):
        await socket.close(_POLICY)
    except (WebSocketDisconnect, RuntimeError):
        # The browser left in the middle of a message.
        pass


@cache
def _shape() -> TypeAdapter[FollowOutput]:
    refuse_unknown_fields(FollowOutput)
    return TypeAdapter(FollowOutput)


ROUTES = (
    GuardedRoute(route=WebSocketRoute(EVENTS, events), open_to=OpenTo.LOOKS),
    GuardedRoute(route=WebSocketRoute(OUTPUT, output), open_to=OpenTo.LOOKS),
)
