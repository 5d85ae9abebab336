"""Finds the daemon: the one LEGION_URL names, else the one that serves the data directory.

LEGION_TOKEN goes with LEGION_URL, and LEGION_SESSION_ID names its owner. The token of the data directory is only ever
sent to the daemon that serves it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from legion.client.http import DaemonAddress, NotRunning
from legion.client.legion import Legion
from legion.system.paths import DataDir
from legion.wire.errors import BadInput, NotAllowed

OWN_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, kw_only=True)
class DaemonRecord:
    """What a daemon writes about itself into daemon.json."""

    pid: int
    url: str
    socket: str | None
    version: str
    mcp: str = ""
    """Where its tools are served over MCP."""
    orchestrate: str = ""
    """A third address, for callers of legion_cc; empty unless the person's settings name its port."""

    @property
    def ports(self) -> frozenset[int]:
        """All TCP ports that it listens on."""
        found = (urlsplit(url).port for url in (self.url, self.mcp, self.orchestrate) if url)
        return frozenset(port for port in found if port is not None)


def is_remote() -> bool:
    """Whether the person named a daemon: then we never start one."""
    return bool(os.environ.get("LEGION_URL"))


def find(data_dir: Path) -> Legion:
    """The daemon, if it is running; NotRunning if not."""
    url = os.environ.get("LEGION_URL")
    legion = Legion(_named(url, data_dir) if url else _recorded(data_dir))
    try:
        legion.healthy()
    except NotRunning:
        if not url:
            raise
        raise NotRunning(f"Nothing answers at {url}, which LEGION_URL names; start Legion there or unset it.") from None
    return legion


def read_record(data_dir: Path) -> DaemonRecord | None:
    """The daemon that served this folder last. It may have ended since: only a request shows that."""
    try:
        data = json.loads(DataDir(data_dir).daemon_record.read_bytes())
        return DaemonRecord(
            pid=data["pid"],
            url=data["url"],
            socket=data.get("socket"),
            version=data["version"],
            mcp=data.get("mcp", ""),
            orchestrate=data.get("orchestrate", ""),
        )
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def _recorded(data_dir: Path) -> DaemonAddress:
    record = read_record(data_dir)
    if record is None:
        raise NotRunning(f"Legion is not running for {data_dir}; `legion up` starts it.")
    return _of_url(record.url, _token(data_dir), socket=record.socket)


def _named(url: str, data_dir: Path) -> DaemonAddress:
    token = os.environ.get("LEGION_TOKEN")
    address = _of_url(url, token or "")
    if token:
        return address
    if address.host not in OWN_NAMES:
        raise NotAllowed(f"LEGION_URL names {address.host}, so set LEGION_TOKEN to the token of that daemon.")
    record = read_record(data_dir)
    if record is None:
        raise NotRunning(f"Legion is not running for {data_dir}; unset LEGION_URL, and `legion up` starts it.")
    if address.port not in record.ports:
        # Another program of this machine, or of another user, may listen there.
        raise NotAllowed(
            f"LEGION_URL names port {address.port}, and the daemon of {data_dir} is at {record.url}: "
            "set LEGION_TOKEN to the token of that other daemon, or unset LEGION_URL."
        )
    # Under another name of this machine another program may listen at the same port.
    address.host, address.token = _of_url(record.url, "").host, _token(data_dir)
    return address


def _of_url(url: str, token: str, socket: str | None = None) -> DaemonAddress:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme != "http":
        raise BadInput(f"LEGION_URL is `{url}`; write it like http://127.0.0.1:6666.")
    # A path that is too long for a socket address is of no use; TCP always works.
    usable = socket if socket and len(os.fsencode(socket)) < 104 and Path(socket).exists() else None
    return DaemonAddress(socket=usable, host=host, port=port or 80, token=token, session=_session())


def _session() -> str:
    """The caller's id from an agent's environment; empty for a person."""
    given = os.environ.get("LEGION_SESSION_ID", "").strip()
    if not (given.isascii() and given.isprintable()):
        raise BadInput("LEGION_SESSION_ID is no agent's id: unset it, or write one that `legion agents` shows.")
    return given


def _token(data_dir: Path) -> str:
    file = DataDir(data_dir).token
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        raise NotRunning(f"Legion is not running for {data_dir}; `legion up` starts it.") from None
    except PermissionError:
        raise NotAllowed(f"The token in {file} is not yours to read; use the account that started Legion.") from None
