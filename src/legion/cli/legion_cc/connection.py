"""One request of a legion_cc program: to our daemon, or to the port that LEGION_ORCHESTRATE_PORT names.

Our token goes to our own daemon only. Behind a port that is not ours may be a legion_cc, which needs no token.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from urllib.parse import quote

from legion.client.discovery import find, read_record
from legion.client.http import DaemonAddress
from legion.system.paths import default_data_dir
from legion.wire.errors import LegionError

_TIMEOUT = 60.0
_LONGEST = 10_000_000


class Unreachable(Exception):
    """The message says why, for `Error: failed to connect to orchestrate API: `."""


def request(method: str, path: str, body: object = None, **query: str) -> tuple[int, str]:
    """Status and body of the answer."""
    port = foreign_port()
    try:
        if port is not None:
            return _answered(http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT), method, path, query, body)
        address = find(default_data_dir()).line.address
        ours = _connection(address)
        return _answered(ours, method, path, {**query, "cwd": _cwd()}, body, headers=_headers(address))
    except LegionError as trouble:
        raise Unreachable(trouble.message) from None
    except (OSError, http.client.HTTPException) as trouble:
        raise Unreachable(str(trouble) or type(trouble).__name__) from None


def foreign_port() -> int | None:
    """The port that the caller names, unless our daemon listens on it."""
    named = os.environ.get("LEGION_ORCHESTRATE_PORT", "")
    if not (named.isascii() and named.isdigit() and 0 < int(named) < 65536):
        return None
    record = read_record(default_data_dir())
    return None if record is not None and int(named) in record.ports else int(named)


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  # as a text, for the query
    except FileNotFoundError:
        raise Unreachable("the current folder no longer exists") from None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT)
        self.sock.connect(self._path)


def _connection(address: DaemonAddress) -> http.client.HTTPConnection:
    if address.socket is not None:
        return _UnixConnection(address.socket)
    return http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT)


def _headers(address: DaemonAddress) -> dict[str, str]:
    session = {"Legion-Session": address.session} if address.session else {}
    return {"Authorization": f"Bearer {address.token}", **session}


def _answered(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    query: dict[str, str],
    body: object,
    headers: dict[str, str] | None = None,
) -> tuple[int, str]:
    content = None if body is None else json.dumps(body).encode()
    given = {**(headers or {}), **({"Content-Type": "application/json"} if content is not None else {})}
    asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    try:
        connection.request(method, f"/legion/orchestrate/{path}{f'?{asked}' if asked else ''}", content, given)
        answer = connection.getresponse()
        return answer.status, answer.read(_LONGEST).decode("utf-8", "replace")
    finally:
        connection.close()
