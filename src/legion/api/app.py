"""Puts the api together."""

from __future__ import annotations

from collections.abc import Collection

from starlette.routing import Route

from legion import __version__
from legion.api import (
    agents,
    events,
    history,
    mcp,
    orchestrate,
    problems,
    projects,
    providers,
    questions,
    teams,
    tickets,
    tools,
    usage,
)
from legion.api.guard import Guard
from legion.api.late import LateApp, LateRoute
from legion.api.ports import CallerPort
from legion.api.waiting import Waiters


def make_app(desk: CallerPort, *, token: str, hosts: Collection[str], heartbeat: float = events.HEARTBEAT) -> Guard:
    """The whole ASGI app. `hosts` are the names, without port, under which it answers over TCP."""
    app = LateApp(
        title="Legion",
        version=__version__,
        openapi_url="/v1/openapi.json",
        # Their pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.desk = desk
    app.state.waiters = Waiters()
    app.state.heartbeat = heartbeat
    problems.install(app)
    for routes in (projects, tickets, teams, agents, questions, tools, orchestrate, providers, usage, history, events):
        app.take(routes.router)
    app.router.routes.append(Route(mcp.PATH, mcp.McpDoor(desk, app.state.waiters), methods=["GET", "POST", "DELETE"]))
    health = {"methods": ["GET"], "summary": "Whether it lives; needs no token"}
    app.router.routes.append(LateRoute("/health", _health, health))
    return Guard(app, desk, token=token, hosts=hosts)


async def _health() -> dict[str, str]:
    return {"status": "healthy"}
