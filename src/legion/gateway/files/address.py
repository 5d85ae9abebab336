"""The file gateway.json: where the gateway listens, and the names of its environment variables, never their values."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from legion.gateway.files.folder import VERSION, Damaged, GatewayFolder, parse
from legion.system import files


@dataclass(frozen=True, kw_only=True)
class GatewayAddress:
    """The address of a gateway that listens."""

    url: str
    pid: int
    release: str
    variables: frozenset[str] = frozenset()
    """Names of the variables in its environment that are not empty; none from a release that does not write them."""


def own_variables() -> frozenset[str]:
    """Names of the variables in the environment of this process that are not empty."""
    return frozenset(name for name, value in os.environ.items() if value.strip())


def announce(folder: GatewayFolder, address: GatewayAddress, *, asked: int) -> None:
    """Write the address. The port that was asked for is stored with it, for `last_port`."""
    names = sorted(address.variables)
    _write(folder, url=address.url, pid=address.pid, release=address.release, variables=names, asked=asked)


def withdraw(folder: GatewayFolder) -> None:
    """Mark the gateway as gone: it accepts no more requests, or was killed. Its port stays in the file."""
    facts = _facts(folder)
    if facts is not None:
        _write(folder, **{**facts, "pid": None})


def announced(folder: GatewayFolder) -> GatewayAddress | None:
    """The address that was announced last and not withdrawn; its gateway may be dead."""
    facts = _facts(folder)
    pid = None if facts is None else facts.get("pid")
    if facts is None or not isinstance(pid, int):
        return None
    names = facts.get("variables")
    return GatewayAddress(
        url=str(facts["url"]),
        pid=pid,
        release=str(facts["release"]),
        variables=frozenset(map(str, names)) if isinstance(names, list) else frozenset(),
    )


def last_port(folder: GatewayFolder, asked: int) -> int:
    """The port of the last gateway that was asked for the same port: running agents expect the next one there."""
    facts = _facts(folder)
    if facts is None or facts.get("asked") != asked:
        return asked
    return urlsplit(str(facts["url"])).port or asked


def _facts(folder: GatewayFolder) -> dict[str, object] | None:
    try:
        facts = parse(folder.record.read_bytes(), folder.record)
    except (FileNotFoundError, Damaged):
        return None
    return facts if "url" in facts and "release" in facts else None


def _write(folder: GatewayFolder, **facts: object) -> None:
    files.write_atomic(folder.record, json.dumps({**facts, "version": VERSION}))
