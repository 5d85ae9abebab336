"""Legion's tools for programs that take an MCP server over HTTP: served by the runner, on loopback, for this run alone.

Each call is forwarded to the daemon, so it survives a restart of the daemon, and the run's token stays in the runner.
The program gets another token, which opens this server only and ends with the run. Only what tools need is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Any

from legion import __version__
from legion.domain.text import to_json
from legion.drivers.profile import ToolLink
from legion.drivers.turns.daemon_link import DaemonLink

_HOST = "127.0.0.1"
_LARGEST_HEAD = 16 << 10
_LARGEST_BODY = 4 << 20
_PROTOCOL = "2025-06-18"
_NO_METHOD = -32601


class ToolServer:
    def __init__(self, link: ToolLink) -> None:
        self._link = link
        self._daemon = DaemonLink(link)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.token = secrets.token_urlsafe(32)

    @staticmethod
    async def open(link: ToolLink) -> ToolServer:
        made = ToolServer(link)
        made._server = await asyncio.start_server(made._connected, _HOST, 0, limit=_LARGEST_HEAD)
        return made

    @property
    def port(self) -> int:
        assert self._server is not None, "open"
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.port}/mcp"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False where the connection ends."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method = head[0].split(" ")[0]
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        size = int(headers.get("content-length", "0"))
        if not 0 <= size <= _LARGEST_BODY or "transfer-encoding" in headers:
            await _send(writer, 413, None)
            return False
        body = await reader.readexactly(size)
        status, answer = await self._answer(method, headers, body)
        await _send(writer, status, answer)
        return headers.get("connection", "").lower() != "close"

    async def _answer(self, method: str, headers: Mapping[str, str], body: bytes) -> tuple[int, object]:
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return 401, None
        if method == "DELETE":
            return 200, None
        if method != "POST":
            # There is no stream of the server's own messages.
            return 405, None
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return 400, None
        if not isinstance(message, dict) or "method" not in message:
            return 202, None
        if "id" not in message:
            return 202, None
        return 200, {"jsonrpc": "2.0", "id": message["id"], **await self._result(message)}

    async def _result(self, message: Mapping[str, Any]) -> dict[str, Any]:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        match message["method"]:
            case "initialize":
                return {"result": self._introduction(params)}
            case "ping":
                return {"result": {}}
            case "tools/list":
                tools = [
                    {"name": one.name, "description": one.description, "inputSchema": dict(one.schema)}
                    for one in self._link.tools
                ]
                return {"result": {"tools": tools}}
            case "tools/call" if params.get("name") in {one.name for one in self._link.tools}:
                arguments = params.get("arguments")
                called = await self._daemon.call(params["name"], arguments if isinstance(arguments, dict) else {})
                return {"result": {"content": [{"type": "text", "text": called.text}], "isError": called.failed}}
            case method:
                return {"error": {"code": _NO_METHOD, "message": f"There is no {method} here."}}

    def _introduction(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if isinstance(wanted, str) else _PROTOCOL,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self._link.server, "version": __version__},
        }


async def _send(writer: asyncio.StreamWriter, status: int, answer: object) -> None:
    body = b"" if answer is None else to_json(answer).encode()
    head = f"HTTP/1.1 {status} Legion\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
