"""Routes for Legion's tools: a name and JSON in, words for a model out."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Path, Request

from legion.api.asking import MaybeFolder, Who, storable
from legion.api.late import LateRouter
from legion.api.ports import CallerPort
from legion.api.waiting import Waiters
from legion.wire.tools import ToolAnswer, ToolCall, Tools

router = LateRouter(prefix="/v1/tools", tag="tools")


@router.get("", summary="The tools that the caller sees")
def tools(request: Request, who: Who) -> Tools:
    desk: CallerPort = request.app.state.desk
    return desk.tools(who)


@router.post("/{name}", summary="Use a tool; `again` says to send the same request once more")
async def call(
    request: Request,
    name: Annotated[str, Path(max_length=80)],
    wanted: ToolCall,
    who: Who,
    cwd: MaybeFolder = None,
) -> ToolAnswer:
    desk: CallerPort = request.app.state.desk
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(desk.call_tool, who, name, storable(wanted), cwd or ""))
