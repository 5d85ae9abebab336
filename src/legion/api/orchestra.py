"""The routes of claude-orchestra, and its WebSocket. They need the person's token."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Annotated, TypeVar, cast

from fastapi import Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from legion.api import devices
from legion.api.json_response import JSONResponse
from legion.api.quota import Quota, QuotaFull
from legion.api.routes import CALLER, FOLDER, GuardedRoute, LazyRoute, caller_of, refuse_unusable
from legion.domain.text import to_json
from legion.service.entry.callers import CallerRegistry
from legion.service.entry.orchestra import Orchestra
from legion.wire.errors import HTTP_STATUS, LegionError, NotAllowed, NotFound
from legion.wire.orchestrate import (
    OrchestraCleaned,
    OrchestraDone,
    OrchestraSession,
    OrchestraStatus,
    OrchestraWorktree,
    Spawned,
    SpawnTasks,
)
from legion.wire.table import OpenTo

SOCKET = "/ws/status"
PUSH_SECONDS = 2.0
"""At the latest after so long the status is sent again."""
_LEAST_PAUSE = 0.2
"""Seconds between two pushes, so that a burst of events costs little."""
_POLICY = 1008
_TRY_LATER = 1013

Shape = TypeVar("Shape")
Folder = Annotated[FOLDER | None, Query()]
AgentId = Annotated[str, Path(min_length=1, max_length=40)]


def status(request: Request, cwd: Folder = None) -> OrchestraStatus:
    return _answered(request, lambda one: one.status(_usable(cwd)))


def sessions(request: Request, hours: Annotated[float, Query(gt=0, le=100_000)] = 4.0) -> list[OrchestraSession]:
    return _answered(request, lambda one: one.sessions(hours))


def worktrees(request: Request, cwd: Folder = None) -> list[OrchestraWorktree]:
    return _answered(request, lambda one: one.worktrees(_usable(cwd)))


def spawn(request: Request, wanted: SpawnTasks, cwd: Folder = None) -> Spawned:
    return _answered(request, lambda one: one.spawn(wanted, _usable(cwd)))


def pause(request: Request, id: AgentId) -> OrchestraDone:
    return _answered(request, lambda one: one.pause(id))


def resume(request: Request, id: AgentId) -> OrchestraDone:
    return _answered(request, lambda one: one.resume(id))


def cleanup(request: Request, all_agents: bool = False, cwd: Folder = None) -> OrchestraCleaned:
    return _answered(request, lambda one: one.cleanup(all_agents, _usable(cwd)))


def _answered(request: Request, ask: Callable[[Orchestra], Shape]) -> Shape:
    """Its clients read `detail` where something went wrong. FastAPI sends a response as it is."""
    callers: CallerRegistry = request.app.state.callers
    try:
        return ask(callers.orchestra(caller_of(request)))
    except LegionError as error:
        known = HTTP_STATUS[type(error)] if isinstance(error, NotAllowed | NotFound) else 400
        return cast(Shape, JSONResponse({"detail": error.message}, known))


def _usable(cwd: str | None) -> str | None:
    refuse_unusable(cwd, "cwd")
    return cwd


async def follow(socket: WebSocket) -> None:
    """Send the status at once, after every change and every two seconds, until either side ends it."""
    callers: CallerRegistry = socket.app.state.callers
    streams: Quota = socket.app.state.streams
    caller = socket.scope[CALLER]
    try:
        streams.take(caller.id)
    except QuotaFull:
        await socket.close(_TRY_LATER)
        return
    reading = None
    try:
        await socket.accept()
        reading = asyncio.create_task(_until_closed(socket))
        await _push(socket, callers.orchestra(caller), reading)
    except (WebSocketDisconnect, RuntimeError):
        # The client left in the middle of a push.
        pass
    finally:
        streams.give_back(caller.id)
        if reading is not None:
            reading.cancel()


async def _push(socket: WebSocket, orchestra: Orchestra, reading: asyncio.Task[None]) -> None:
    callers: CallerRegistry = socket.app.state.callers
    still_in = partial(devices.is_still_in, callers, socket.scope)
    waiters = socket.app.state.stream_waiters
    caller = socket.scope[CALLER]
    service = callers.acting(caller)
    while not reading.done():
        # Read before the device is checked: shutting it out after the check is then a newer event, and ends the wait.
        seen = await run_in_threadpool(service.last_event)
        if not await run_in_threadpool(still_in):
            break
        found = await run_in_threadpool(orchestra.status)
        await socket.send_text(to_json(asdict(found)))
        await asyncio.wait([reading], timeout=_LEAST_PAUSE)
        waiting = asyncio.ensure_future(waiters.run(caller.id, partial(service.wait_for_event, seen, PUSH_SECONDS)))
        await asyncio.wait([reading, waiting], return_when=asyncio.FIRST_COMPLETED)
    with contextlib.suppress(RuntimeError):
        await socket.close(_POLICY)


async def _until_closed(socket: WebSocket) -> None:
    """Whatever the client sends is left unread."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


ROUTES = tuple(
    GuardedRoute(route=route, open_to=OpenTo.PERSON)
    for route in (
        LazyRoute("/api/status", "GET", lambda: status, summary="Tickets as agents of claude-orchestra"),
        LazyRoute("/api/sessions", "GET", lambda: sessions, summary="Conversations of the person's agent programs"),
        LazyRoute("/api/worktrees", "GET", lambda: worktrees, summary="Worktrees of the project's agents"),
        LazyRoute("/api/spawn", "POST", lambda: spawn, summary="Create a ticket for each task"),
        LazyRoute("/api/agents/{id:name}/pause", "POST", lambda: pause, summary="Pause a ticket"),
        LazyRoute("/api/agents/{id:name}/resume", "POST", lambda: resume, summary="Resume a ticket"),
        LazyRoute("/api/cleanup", "POST", lambda: cleanup, summary="Remove ended tickets from the board"),
        WebSocketRoute(SOCKET, follow),
    )
)
