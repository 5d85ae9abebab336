"""Addresses of the daemon: its ports, its socket file, the token, and daemon.json, in which clients find them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import secrets
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http import h11_impl

from legion.api.guard import Guard
from legion.domain.errors import NotAllowed, Retryable
from legion.system import files, ports
from legion.system.paths import DataDir

_MAX_SOCKET_PATH = 100


@dataclass(frozen=True, kw_only=True)
class DaemonFile:
    """daemon.json: how clients find the daemon of a data folder."""

    pid: int
    url: str
    socket: str | None
    mcp: str
    """Legion's tools over MCP, on a port that browsers and node accept."""
    version: str
    orchestrate: str = ""
    """Another address, for callers of legion_cc; empty: none."""

    def write(self, data: DataDir) -> None:
        files.write_atomic(data.daemon_record, json.dumps(asdict(self)))


def token(data: DataDir) -> str:
    """The person's token, created at the first start and readable only by the person."""
    with contextlib.suppress(FileNotFoundError):
        if (known := data.token.read_text().strip()) != "":
            data.token.chmod(0o600)
            return known
    fresh = secrets.token_urlsafe(32)
    files.write_atomic(data.token, f"{fresh}\n")
    return fresh


def on_port(host: str, port: int) -> list[socket.socket]:
    """Listen on the wanted port, or on the next free one, at each address of the host."""
    try:
        listeners = ports.listen_by_name(host, port)
    except ports.Unusable as fault:
        raise NotAllowed(
            f"Legion cannot listen on {host} port {fault.port} ({fault.reason}): choose another with --port."
        ) from fault
    if not listeners:
        raise Retryable(f"No port from {port} on is free on {host}: choose another with --port.")
    return listeners


def on_socket(path: Path) -> socket.socket | None:
    """Listen on a socket file that only the person can open; None where the path is too long for one."""
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
        return None
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


class BoundedHttp(h11_impl.H11Protocol):
    head_seconds = 10.0
    """For a head, from the connection or from its first byte on."""
    most_waiting = 256
    """Connections without a complete head. One more ends the oldest: a client of ours sends its head at once."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._since = time.monotonic()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) > self.most_waiting:
            others: list[Any] = list(self.connections)
            waiting = [one for one in others if isinstance(one, BoundedHttp) and getattr(one, "cycle", None) is None]
            if len(waiting) > self.most_waiting:
                min(waiting, key=lambda one: one._since).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.get_protocol() is not self or repr(self.conn.their_state) != "IDLE":
            self._stop_waiting()
        elif self._timer is None and self.conn.trailing_data[0]:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_MODULE, _CLASS = "uvicorn.protocols.websockets.websockets_sansio_impl", "WebSocketsSansIOProtocol"
MOST_BYTES = 1 << 20
"""Of one message that a client sends."""


def _protocol(**given: Any) -> asyncio.Protocol:
    made: asyncio.Protocol = getattr(importlib.import_module(_MODULE), _CLASS)(**given)
    return made


PROTOCOL = cast(type[asyncio.Protocol], _protocol)
"""For `uvicorn.Config(ws=...)`, which calls it once per connection."""


def config(app: Guard) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=2,
        http=BoundedHttp,
        ws=PROTOCOL,
        ws_max_size=MOST_BYTES,
    )
