"""gateway.json: where the gateway of a folder listens, and which variables it has. Never what one holds.

Knows nothing of how a gateway is started or ended.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from legion.gateway.files.folder import VERSION, Damaged, GatewayFolder, parse
from legion.system import files


@dataclass(frozen=True, kw_only=True)
class GatewayAddress:
    """A gateway that listens."""

    url: str
    pid: int
    release: str
    variables: frozenset[str] = frozenset()
    """The names in its environment under which something is; none where it is too old to tell."""


def own_variables() -> frozenset[str]:
    """The names in the environment of this process under which something is."""
    return frozenset(name for name, value in os.environ.items() if value.strip())


def announce(folder: GatewayFolder, address: GatewayAddress, *, asked: int) -> None:
    """Tell whoever looks. The port that was asked for is kept beside, for `last_port`."""
    names = sorted(address.variables)
    _write(folder, url=address.url, pid=address.pid, release=address.release, variables=names, asked=asked)


def withdraw(folder: GatewayFolder) -> None:
    """The gateway takes no more requests, or was killed before it could say so. Its port stays known."""
    facts = _facts(folder)
    if facts is not None:
        _write(folder, **{**facts, "pid": None})


def announced(folder: GatewayFolder) -> GatewayAddress | None:
    """Who announced itself last and did not withdraw; it may be dead."""
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
    """Where the last gateway listened that was asked for the same port: living agents look for the next one there."""
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
    files.write_whole(folder.record, json.dumps({**facts, "version": VERSION}))
