"""Assembles the ASGI app: the guard, the routes of all operations, the event stream, MCP."""

from __future__ import annotations

from collections.abc import Collection

from fastapi.responses import StreamingResponse
from starlette.routing import Route

from legion import __version__
from legion.api import events, forge_hook, mcp, orchestra, orchestrate, page, page_sockets, problems, routes, terminals
from legion.api.guard import Guard
from legion.api.long_polls import Waiters
from legion.api.routes import LazyApp, LazyRoute
from legion.service.entry.callers import CallerRegistry
from legion.wire.operations import OPERATIONS
from legion.wire.orchestrate import OrchestrateOperations
from legion.wire.table import rows


def make_app(
    callers: CallerRegistry, *, token: str, hosts: Collection[str], heartbeat: float = events.HEARTBEAT
) -> Guard:
    """The complete ASGI app. `hosts` are the names, without port, under which it answers over TCP."""
    app = LazyApp(
        title="Legion",
        version=__version__,
        openapi_url="/v1/openapi.json",
        # Their pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.callers = callers
    app.state.waiters = Waiters()
    app.state.streams = events.Streams()
    # Apart from long polls, so that streams cannot take all threads of those.
    app.state.stream_waiters = Waiters()
    app.state.heartbeat = heartbeat
    app.state.page = page.PageFiles()
    app.state.terminals = terminals.OpenTerminals()
    problems.install(app)
    # First: a browser that opens the page requests many of these at once.
    app.router.routes += page.ROUTES
    app.take(OPERATIONS.values(), routes.perform)
    app.take(rows(OrchestrateOperations).values(), orchestrate.perform)
    app.router.routes += [
        LazyRoute(events.PATH, "GET", lambda: events.events, summary=events.SUMMARY, response_class=StreamingResponse),
        LazyRoute("/health", "GET", lambda: _health, summary="Check that the daemon answers; needs no token"),
        forge_hook.ROUTE,
        Route(mcp.PATH, mcp.McpApp(callers, app.state.waiters), methods=["GET", "POST", "DELETE"]),
    ]
    app.router.routes += [*orchestra.ROUTES, *page_sockets.ROUTES, terminals.ROUTE]
    return Guard(app, callers, token=token, hosts=hosts)


async def _health() -> dict[str, str]:
    return {"status": "healthy"}
