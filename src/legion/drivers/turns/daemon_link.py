"""Calls Legion's tools on an agent's behalf: the runner's connection to the daemon that currently serves its folder.

The runner is outside of the sandbox, so it reaches the daemon's socket, and the agent never sees the token. A call that
finds no daemon waits for the next one: each request has an id, so it is executed once.
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

from legion.domain.text import to_json
from legion.drivers.profile import ToolLink

_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between two tries; the last one repeats until there is a daemon again."""
_MOST_BUSY = 30
"""How often a daemon may answer that it is busy before the model gets that answer."""
_LONGEST_ANSWER = 8 << 20
_NO_ANSWER = 120.0
"""Seconds: the daemon answers every call, or asks to repeat it, long before."""


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    text: str
    failed: bool


class DaemonAway(Exception):
    """No daemon answers, or its answer cannot be parsed."""


@dataclass(kw_only=True)
class DaemonReply:
    status: int
    body: Mapping[str, Any] = field(default_factory=dict)


class DaemonLink:
    """Calls the daemon that currently serves the data folder."""

    def __init__(self, link: ToolLink) -> None:
        self._link = link

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Retry until there is an answer, or the run ends."""
        body = to_json({"arguments": arguments, "request": str(uuid.uuid4())}).encode()
        tries = busy = 0
        while True:
            try:
                reply = await asyncio.wait_for(self._post(f"/v1/tools/{tool}", body), _NO_ANSWER)
            except (DaemonAway, OSError, TimeoutError, EOFError):
                reply = None
            if reply is None or (reply.status == 503 and busy < _MOST_BUSY):
                # No daemon is running, or it is too busy, or shutting down.
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
        socket, url = self._address()
        reader, writer = await _connect(socket, url)
        # On a machine the daemon is reached through a relay, under a path of the run's own.
        prefix, host = ("", "localhost") if socket else (url.path.rstrip("/"), url.netloc)
        try:
            head = (
                f"POST {prefix}{path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {self._link.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
            return _parse(await reader.read(-1))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _address(self) -> tuple[str | None, SplitResult]:
        """The record holds the current daemon's address, which may differ from that of the daemon before."""
        try:
            record = json.loads(Path(self._link.record).read_bytes())
            return record["socket"], urlsplit(record["url"])
        except (OSError, ValueError, KeyError) as unreadable:
            raise DaemonAway from unreadable


async def _connect(socket: str | None, url: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if socket:
        return await asyncio.open_unix_connection(socket, limit=_LONGEST_ANSWER)
    return await asyncio.open_connection(url.hostname, url.port, limit=_LONGEST_ANSWER)


def _parse(answer: bytes) -> DaemonReply:
    head, gap, content = answer.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)
    if not gap or len(status) < 2 or not status[1].isdigit():
        raise DaemonAway
    try:
        body = json.loads(content)
    except ValueError:
        raise DaemonAway from None
    return DaemonReply(status=int(status[1]), body=body if isinstance(body, dict) else {})
