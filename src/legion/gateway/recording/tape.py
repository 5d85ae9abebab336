"""Tapes: requests and answers of recorded runs, one line per complete answer, without keys and tokens.

The gateway writes them, the daemon reads them.
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
    """One request and its answer."""

    at: float
    path: str
    """The path of the caller's API."""
    conversation: str
    agent: str
    """Id of a subagent; empty for the main agent."""
    request: str
    """The body, as the caller sent it."""
    thought: str
    text: str
    calls: tuple[RecordedCall, ...]
    stop: str
    """Anthropic's name for the reason."""
    input: int
    output: int
    cache_read: int
    cache_write: int


def start(folder: GatewayFolder) -> None:
    """Record new runs from now on. Deletes tapes older than a month."""
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


def facts_of(exchange: RecordedExchange) -> dict[str, Any]:
    return {"version": VERSION, **vars(exchange), "calls": [vars(call) for call in exchange.calls]}


def exchanges(folder: GatewayFolder, run: str) -> Iterator[RecordedExchange]:
    """The exchanges of a run in the order in which they ended. A line that a kill cut off is left out."""
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
