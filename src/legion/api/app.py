"""Assembles the ASGI app: the guard, the routes of all operations, the event stream, MCP."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from starlette.responses import Response
from starlette.routing import Route

from legion import __version__
from legion.api import events, mcp, orchestra, page, problems, routes, terminals
from legion.api.guard import Guard
from legion.api.json_response import JSONResponse
from legion.api.problems import note_refusal
from legion.api.quota import Quota, Waiters
from legion.api.routes import GuardedRoute, LazyApp, LazyRoute, RouteTable, caller_of
from legion.service.entry.callers import CallerRegistry
from legion.wire.errors import HTTP_STATUS, BadInput, LegionError, NotAllowed, NotFound
from legion.wire.operations import OPERATIONS
from legion.wire.orchestrate import OldProviders, OrchestrateOperations
from legion.wire.table import OpenTo, Operation, rows


def perform(request: Request, row: Operation, arguments: Mapping[str, Any]) -> object:
    """Its clients read `error` where something went wrong."""
    callers: CallerRegistry = request.app.state.callers
    try:
        answer = callers.orchestrate(caller_of(request)).call(row, arguments)
        return JSONResponse([asdict(one) for one in answer.providers]) if isinstance(answer, OldProviders) else answer
    except LegionError as error:
        if isinstance(error, NotAllowed):
            note_refusal(request, error)
        status = HTTP_STATUS[type(error)] if isinstance(error, NotAllowed | NotFound) else 400
        return JSONResponse({"error": error.message}, status)


PATH = "/v1/forge/hook"


async def _receive(request: Request) -> Response:
    callers: CallerRegistry = request.app.state.callers
    project = request.query_params.get("project", "")
    headers, raw = request.headers, await request.body()
    try:
        if not project.isdecimal() or len(project) > 9:
            raise BadInput("This webhook names no project: use the path that `legion forge hook` prints.")
        new = await run_in_threadpool(
            callers.forge_hook,
            int(project),
            signature=headers.get("x-hub-signature-256", ""),
            delivery=headers.get("x-github-delivery", ""),
            raw=raw,
        )
    except NotAllowed as refusal:
        return problems.answer(refusal, 401)
    except LegionError as refusal:
        return problems.answer(refusal)
    return JSONResponse({"new": new}, status_code=202)


_MOST_BYTES = 2 * 1024 * 1024
"""What is longer is not lost: the next look at the forge finds it."""
HOOK_ROUTE = GuardedRoute(
    route=Route(PATH, _receive, methods=["POST"]), open_to=OpenTo.NO_LOGIN, most_body=_MOST_BYTES, any_host=True
)


def make_app(
    callers: CallerRegistry,
    *,
    token: str | None,
    hosts: Collection[str],
    behind: str = "",
    heartbeat: float = events.HEARTBEAT,
) -> Guard:
    """The complete ASGI app. `hosts` are the names, without port, under which it answers over TCP.

    Without `token` it is opened by browsers alone. `behind` is the name that a proxy in front of it has.
    """
    # The pages of FastAPI's documents load scripts from other hosts.
    app = LazyApp(title="Legion", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.callers = callers
    app.state.waiters = Waiters()
    app.state.streams = Quota("streams of events", events.MOST_STREAMS, each=events.MOST_STREAMS)
    # Apart from long polls, so that streams cannot take all threads of those.
    app.state.stream_waiters = Waiters()
    app.state.heartbeat = heartbeat
    app.state.page = page.PageFiles()
    app.state.terminals = terminals.OpenTerminals()
    problems.install(app)
    app.serve(table(callers, app.state.waiters))
    return Guard(app, app.table, callers, token=token, hosts=hosts, behind=behind)


def table(callers: CallerRegistry, waiters: Waiters) -> RouteTable:
    """Every route of the daemon, with those who may call it."""
    mcp_route = Route(mcp.PATH, mcp.McpApp(callers, waiters), methods=["GET", "POST", "DELETE"])
    return RouteTable(
        (
            *page.ROUTES,
            *(routes.route_of(row, routes.perform) for row in OPERATIONS.values()),
            *(routes.route_of(row, perform) for row in rows(OrchestrateOperations).values()),
            GuardedRoute(
                route=LazyRoute(
                    events.PATH, "GET", lambda: events.events, summary=events.SUMMARY, response_class=StreamingResponse
                ),
                open_to=OpenTo.LOOKS,
            ),
            GuardedRoute(
                route=LazyRoute(
                    "/health", "GET", lambda: _health, summary="Check that the daemon answers; needs no token"
                ),
                open_to=OpenTo.NO_LOGIN,
            ),
            GuardedRoute(route=Route("/v1/openapi.json", _openapi, methods=["GET"]), open_to=OpenTo.LOOKS),
            HOOK_ROUTE,
            GuardedRoute(route=mcp_route, open_to=OpenTo.ALL | OpenTo.PLUGIN),
            *orchestra.ROUTES,
            *page.SOCKET_ROUTES,
            terminals.ROUTE,
        )
    )


async def _health() -> dict[str, str]:
    return {"status": "healthy"}


async def _openapi(request: Request) -> Response:
    return JSONResponse(request.app.openapi())
