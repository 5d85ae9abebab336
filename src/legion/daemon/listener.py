"""Addresses of the daemon: its ports, its socket file, the token, and daemon.json, in which clients find them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

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
