"""The last lines of a commit's message, which programs read: `Ticket: 12`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TRAILER = re.compile(rb"[A-Za-z][A-Za-z0-9-]*: .*")


def with_trailers(message: bytes, trailers: Mapping[str, str]) -> bytes:
    """The message with these among its trailers. What it said itself under the same names is replaced."""
    if not trailers:
        return message
    ours = {name.lower().encode(): _line(name, value) for name, value in trailers.items()}
    body, theirs = _split(message.strip(b"\n"))
    kept = [line for line in theirs if line.split(b":")[0].lower() not in ours]
    block = b"\n".join((*kept, *ours.values()))
    return (body + b"\n\n" + block if body else block) + b"\n"


def trailer(message: bytes, name: str) -> str:
    """What the message says under this name among its trailers; empty where it says nothing."""
    start = name.lower().encode() + b":"
    said = [line[len(start) :] for line in _split(message.strip(b"\n"))[1] if line.lower().startswith(start)]
    return said[-1].decode("ascii", "replace").strip() if said else ""


def _split(message: bytes) -> tuple[bytes, list[bytes]]:
    """The text, and its last paragraph where that is nothing but trailers. A subject alone is none."""
    body, blank, last = message.rpartition(b"\n\n")
    lines = last.split(b"\n")
    if blank and all(_TRAILER.fullmatch(line) for line in lines):
        return body.rstrip(b"\n"), lines
    return message, []


def _line(name: str, value: str) -> bytes:
    """ASCII, because a replayed message may be in any encoding."""
    return f"{name}: {' '.join(value.split())}".encode("ascii", "replace")
