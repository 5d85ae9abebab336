"""Puts the api together."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer

from legion import __version__
from legion.api import events, history, problems, projects, providers, questions, tickets, usage
from legion.api.guard import Guard
from legion.api.ports import Service
from legion.api.waiting import Waiters
from legion.wire.projects import Problem


def make_app(service: Service, *, token: str, hosts: Collection[str], heartbeat: float = events.HEARTBEAT) -> Guard:
    """The whole ASGI app. `hosts` are the names, without port, under which it answers over TCP."""
    app = FastAPI(
        title="Legion",
        version=__version__,
        openapi_url="/v1/openapi.json",
        # Their pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        responses={"default": {"model": Problem, "description": "What went wrong, in one sentence"}},
        # Says in the OpenAPI document what the guard asks for.
        dependencies=[Depends(HTTPBearer(auto_error=False))],
        redirect_slashes=False,
    )
    app.state.service = service
    app.state.waiters = Waiters()
    app.state.heartbeat = heartbeat
    problems.install(app)
    for routes in (projects, tickets, questions, providers, usage, history, events):
        app.include_router(routes.router)
    app.add_api_route("/health", _health, summary="Whether it lives; needs no token")
    return Guard(app, token=token, hosts=hosts)


async def _health() -> dict[str, str]:
    return {"status": "healthy"}
