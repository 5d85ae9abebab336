"""The ledger: one line per finished request, per limit met and per refusal. The gateway writes, the daemon reads.

Knows the lines and how to read on from a position; the gateway writes them through `book`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from legion.gateway.files.folder import VERSION, GatewayFolder

_AT_ONCE = 4 << 20
"""Bytes that one call of `read` takes at most, unless a single line is longer."""


class RequestError(Enum):
    """Why a request ended otherwise than the provider meant it to. Other words in `error` are the provider's own."""

    CALLER_GONE = "caller_gone"
    UPSTREAM_GONE = "upstream_gone"
    UNREACHABLE = "unreachable"
    IDLE = "idle"
    """No byte came for too long."""
    ENDED = "gateway_ended"
    UNFINISHED = "unfinished"
    """The stream ended as if all was well, without its last event."""
    UNREADABLE = "usage_unreadable"
    """The answer was compressed although we asked for plain bytes, so nothing of it is counted."""
    BUDGET = "budget_reached"
    NO_PRICE = "no_price"
    MODEL = "model_not_allowed"
    NO_PROVIDER = "no_provider"
    NO_KEY = "no_key"
    BROKEN = "gateway_broken"
    NO_PASS = "no_pass"
    """The token opens nothing."""
    FOREIGN = "foreign_caller"
    """It came from a page, or for another host."""
    NO_SUCH_PATH = "no_such_path"
    METHOD = "wrong_method"
    BAD_REQUEST = "bad_request"
    """The gateway itself cannot read it, or will not."""


@dataclass(frozen=True, kw_only=True)
class RequestEntry:
    """One finished request. Counts are tokens; `at` is when it ended, in seconds since 1970."""

    id: str
    at: float
    run: str
    ticket: int
    project: int
    agent: str
    provider: str
    model: str
    status: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    usd: float | None
    """None: the model has no price."""
    ms: int
    first_ms: int | None
    """Until the first byte of the answer's body."""
    cut: bool
    """The answer did not come to its end; the counts are what was seen until then."""
    error: str


@dataclass(frozen=True, kw_only=True)
class LimitEntry:
    """What a provider said about its limits."""

    at: float
    run: str
    provider: str
    status: int
    resets_at: float | None
    retry_after: float | None
    utilization: float | None
    """How much of the window is used up, 1 being all."""
    window: str


@dataclass(frozen=True, kw_only=True)
class RefusalEntry:
    """Requests that were turned away before they were anybody's, or too many of a run to tell of each."""

    at: float
    run: str
    """Empty where nobody knows who asked. What was shown as a token is written nowhere."""
    status: int
    reason: str
    """The value of a Trouble."""
    times: int


Line = RequestEntry | LimitEntry | RefusalEntry


@dataclass(frozen=True)
class LedgerPosition:
    """Up to where a reader has read. The empty one is before everything."""

    file: str = ""
    offset: int = 0


def facts_of(line: Line) -> dict[str, Any]:
    """What a line says, to be written as one line of JSON."""
    match line:
        case RequestEntry():
            return {"version": VERSION, **vars(line)}
        case LimitEntry():
            return {"version": VERSION, "limit": vars(line)}
        case RefusalEntry():
            return {"version": VERSION, "refused": vars(line)}


def decode(text: bytes) -> Line | None:
    """None for a line that a kill cut off, or that a later release wrote."""
    try:
        facts: dict[str, Any] = json.loads(text)
        if facts.pop("version") != VERSION:
            return None
        if "limit" in facts:
            return LimitEntry(**_known(LimitEntry, facts["limit"]))
        if "refused" in facts:
            return RefusalEntry(**_known(RefusalEntry, facts["refused"]))
        return RequestEntry(**_known(RequestEntry, facts))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def read(folder: GatewayFolder, after: LedgerPosition) -> tuple[list[Line], LedgerPosition]:
    """The lines after a position and the position behind them. Ask again until it no longer moves."""
    # Listed before anything is read: a file that has a successor now gets no more lines.
    for path in sorted(folder.ledger.glob("*.jsonl")):
        if path.name < after.file:
            continue
        offset = after.offset if path.name == after.file else 0
        content = _whole_lines(path, offset)
        if content:
            lines = [line for text in content.splitlines() if (line := decode(text)) is not None]
            return lines, LedgerPosition(path.name, offset + len(content))
    return [], after


def _whole_lines(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        content = file.read(_AT_ONCE)
        if len(content) == _AT_ONCE and b"\n" not in content:
            content += file.readline()
    return content[: content.rfind(b"\n") + 1]


def _known(kind: type[Line], facts: dict[str, Any]) -> dict[str, Any]:
    return {name: facts[name] for name in kind.__dataclass_fields__}
