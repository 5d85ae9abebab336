"""Legion's own tools for Claude Code: an MCP server inside the runner that passes each call on to the daemon.

The runner is outside of the sandbox, so it reaches the daemon's socket, and the token never comes near the agent. A
call that finds no daemon waits for the next one: the request has a name, so that it counts once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from claude_agent_sdk import McpSdkServerConfig
from mcp.server import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from legion.drivers.profile import ToolLink, ToolText

_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between two tries; the last one counts until there is a daemon again."""
_MOST_BUSY = 30
"""How often a daemon may say that it is busy before the model hears of it."""
_LONGEST_ANSWER = 8 << 20
_NO_ANSWER = 120.0
"""Seconds: every call is answered, or told to ask again, long before."""


def server(desk: ToolLink) -> McpSdkServerConfig:
    line = DaemonLink(desk)
    listed = ListToolsResult(tools=[_tool(text) for text in desk.tools])

    async def on_list(_context: object, _params: object) -> ListToolsResult:
        return listed

    async def on_call(_context: object, params: CallToolRequestParams) -> CallToolResult:
        answer = await line.call(params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(text=answer.text)], is_error=answer.failed)

    made = Server(desk.server, on_list_tools=on_list, on_call_tool=on_call)
    return McpSdkServerConfig(type="sdk", name=desk.server, instance=made)


def _tool(text: ToolText) -> Tool:
    """Always loaded: Claude Code hides other tools behind a search, and who never sees a tool never looks for it."""
    return Tool.model_validate(
        {
            "name": text.name,
            "description": text.description,
            "inputSchema": dict(text.schema),
            "_meta": {"anthropic/alwaysLoad": True},
        }
    )


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    text: str
    failed: bool


class DaemonAway(Exception):
    """Nobody answers at the moment, or not with something that we understand."""


@dataclass(kw_only=True)
class DaemonReply:
    status: int
    body: Mapping[str, Any] = field(default_factory=dict)


class DaemonLink:
    """To whichever daemon serves the folder at the moment."""

    def __init__(self, desk: ToolLink) -> None:
        self._desk = desk

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Until there is an answer; whoever ends the run ends this."""
        body = json.dumps({"arguments": arguments, "request": str(uuid.uuid4())}).encode()
        tries = busy = 0
        while True:
            try:
                reply = await asyncio.wait_for(self._post(f"/v1/tools/{tool}", body), _NO_ANSWER)
            except (DaemonAway, OSError, TimeoutError, EOFError):
                reply = None
            if reply is None or (reply.status == 503 and busy < _MOST_BUSY):
                # There is no daemon at the moment, or it is too busy, or just ending.
                busy += reply is not None
                await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
                tries += 1
                continue
            if reply.status == 200 and reply.body.get("again") is True:
                tries = busy = 0
                continue
            if reply.status == 200:
                return ToolResult(text=str(reply.body.get("text", "")), failed=False)
            return ToolResult(text=str(reply.body.get("message", f"Legion answered {reply.status}.")), failed=True)

    async def _post(self, path: str, body: bytes) -> DaemonReply:
        reader, writer = await self._connect()
        try:
            head = (
                f"POST {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {self._desk.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
            return _understood(await reader.read(-1))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        socket, url = self._listening()
        if socket:
            return await asyncio.open_unix_connection(socket, limit=_LONGEST_ANSWER)
        return await asyncio.open_connection(url.hostname, url.port, limit=_LONGEST_ANSWER)

    def _listening(self) -> tuple[str | None, SplitResult]:
        """The record names the daemon of this moment, which may listen elsewhere than the one before."""
        try:
            record = json.loads(Path(self._desk.record).read_bytes())
            return record["socket"], urlsplit(record["url"])
        except (OSError, ValueError, KeyError) as unreadable:
            raise DaemonAway from unreadable


def _understood(answer: bytes) -> DaemonReply:
    head, gap, content = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if not gap or len(words) < 2 or not words[1].isdigit():
        raise DaemonAway
    try:
        body = json.loads(content)
    except ValueError:
        raise DaemonAway from None
    return DaemonReply(status=int(words[1]), body=body if isinstance(body, dict) else {})
