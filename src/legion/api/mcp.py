"""Legion's tools over MCP (streamable HTTP), for programs that are not driven through their own SDK.

Behind the guard like every route: the bearer token identifies the caller. No session is kept, so a restart loses none.
Served by the daemon itself: a separate process would cost 80 MB for a feature that may not be used. The library is
imported at the first request, because its import takes longer than the rest of the start.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from legion import __version__
from legion.api.quota import Waiters
from legion.api.routes import CALLER
from legion.domain.agents.tools import SERVER
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import Caller
from legion.wire.agents import ToolCall
from legion.wire.errors import LegionError

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult

PATH = "/mcp"
REQUEST = "legion/request"
"""In `_meta` of a call: its name."""
_NAME = re.compile(r"[ -~]{1,200}")


class McpApp:
    """The ASGI app at /mcp."""

    def __init__(self, callers: CallerRegistry, waiters: Waiters) -> None:
        self._callers = callers
        self._waiters = waiters
        self._manager: StreamableHTTPSessionManager | None = None
        self._opening: asyncio.Lock = asyncio.Lock()
        self._open: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        manager = await self._opened()
        await manager.handle_request(scope, receive, send)

    async def _opened(self) -> StreamableHTTPSessionManager:
        async with self._opening:
            if self._manager is None or self._open is None or self._open.done():
                self._manager = await asyncio.to_thread(self._made)
                ready = asyncio.Event()
                self._open = asyncio.create_task(_kept_open(self._manager, ready))
                self._open.add_done_callback(lambda _: ready.set())
                await ready.wait()
            return self._manager

    def _made(self) -> StreamableHTTPSessionManager:
        from mcp.server import Server
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        server: Server[Any] = Server(SERVER, version=__version__, on_list_tools=self._list, on_call_tool=self._call)
        return StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    async def _list(self, context: ServerRequestContext[Any, Any], _params: object) -> ListToolsResult:
        from mcp.types import ListToolsResult, Tool

        caller = _caller(context)
        listed = await self._waiters.run(caller.id, partial(self._callers.tools, caller))
        return ListToolsResult(
            tools=[
                Tool.model_validate(
                    {
                        "name": one.name,
                        "description": one.description,
                        "inputSchema": one.parameters,
                        # Claude Code would hide them behind a search.
                        "_meta": {"anthropic/alwaysLoad": True},
                    }
                )
                for one in listed.tools
            ]
        )

    async def _call(self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        from mcp.types import CallToolResult, TextContent

        wanted = ToolCall(arguments=params.arguments or {}, request=_request(params))
        caller, request = _caller(context), context.request
        assert request is not None, "it came over HTTP"
        use = partial(self._callers.use_tool, caller, params.name, wanted, request.query_params.get("cwd", ""))
        try:
            answer = await self._waiters.run(caller.id, use)
            # A client that has left asks again when it comes back.
            while answer.again and not await request.is_disconnected():
                answer = await self._waiters.run(caller.id, use)
        except LegionError as refused:
            return CallToolResult(content=[TextContent(text=refused.message)], is_error=True)
        return CallToolResult(content=[TextContent(text=answer.text)], structured_content=answer.data)


def _request(params: CallToolRequestParams) -> str:
    """The name that the caller gave this use, so that the same one again counts once; else one of its own."""
    named = (params.meta or {}).get(REQUEST)
    return named if isinstance(named, str) and _NAME.fullmatch(named) else str(uuid.uuid4())


def _caller(context: ServerRequestContext[Any, Any]) -> Caller:
    assert context.request is not None, "it came over HTTP"
    caller = context.request.scope[CALLER]
    assert isinstance(caller, Caller)
    return caller


async def _kept_open(manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
    """Run the manager until the daemon ends, which cancels this task."""
    with contextlib.suppress(asyncio.CancelledError):
        async with manager.run():
            ready.set()
            await asyncio.Event().wait()
