"""The route for webhooks of forges: without the daemon's token, only with a valid signature over the exact bytes."""

from __future__ import annotations

from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from legion.api import problems
from legion.api.json_response import JSONResponse
from legion.api.route_table import GuardedRoute
from legion.service.entry.callers import CallerRegistry
from legion.wire.errors import BadInput, LegionError, NotAllowed
from legion.wire.table import OpenTo

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
ROUTE = GuardedRoute(
    route=Route(PATH, _receive, methods=["POST"]), open_to=OpenTo.NO_LOGIN, most_body=_MOST_BYTES, any_host=True
)
