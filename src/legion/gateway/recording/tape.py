"""Tapes: what recorded runs asked and were answered, one line per answer that came to its end.

Written by the gateway, read by the daemon. What belongs to nobody else (keys, tokens) is not on them.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from legion.gateway.files.folder import VERSION, GatewayFolder

_KEPT = 30 * 86_400.0


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """One call of a tool, with its input as the model wrote it."""

    tool: str
    input: str


@dataclass(frozen=True, kw_only=True)
class RecordedExchange:
    """One question and its answer."""

    at: float
    path: str
    """Which API the caller speaks."""
    conversation: str
    agent: str
    """Of a subagent; empty for the main one."""
    request: str
    """The body, as the caller sent it."""
    thought: str
    text: str
    calls: tuple[RecordedCall, ...]
    stop: str
    """Anthropic's word for it."""
    input: int
    output: int
    cache_read: int
    cache_write: int


def start(folder: GatewayFolder) -> None:
    """From here on new runs are recorded. Tapes that nobody asked for in a month go."""
    folder.tapes.mkdir(parents=True, exist_ok=True, mode=0o700)
    for old in folder.tapes.glob("*.jsonl"):
        with contextlib.suppress(FileNotFoundError):
            if old.stat().st_mtime < time.time() - _KEPT:
                old.unlink()
    folder.recording.touch(mode=0o600)


def stop(folder: GatewayFolder) -> None:
    folder.recording.unlink(missing_ok=True)


def is_recording(folder: GatewayFolder) -> bool:
    return folder.recording.exists()


def facts_of(take: RecordedExchange) -> dict[str, Any]:
    return {"version": VERSION, **vars(take), "calls": [vars(call) for call in take.calls]}


def takes(folder: GatewayFolder, run: str) -> Iterator[RecordedExchange]:
    """In the order in which they ended. A line that a kill cut off is left out."""
    try:
        lines = (folder.tapes / f"{run}.jsonl").read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            facts = json.loads(line)
            known = {name: facts[name] for name in RecordedExchange.__dataclass_fields__}
            yield RecordedExchange(**{**known, "calls": tuple(RecordedCall(**call) for call in facts["calls"])})
        except (KeyError, TypeError, ValueError):
            continue
