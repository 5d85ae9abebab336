"""The ledger: one line per finished request, reported limit or refusal. The gateway writes it, the daemon reads it.

Defines the lines and reads them from a position on; `meter` writes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from legion.gateway.files.folder import VERSION, GatewayFolder

_MAX_READ = 4 << 20
"""Bytes that one call of `read` returns at most, unless a single line is longer."""


class RequestError(Enum):
    """Why a request did not end as the provider intended. Other values of `error` are the provider's own names."""

    CALLER_GONE = "caller_gone"
    UPSTREAM_GONE = "upstream_gone"
    UNREACHABLE = "unreachable"
    IDLE = "idle"
    """No byte came from the provider for too long."""
    ENDED = "gateway_ended"
    UNFINISHED = "unfinished"
    """The stream was closed properly, but without its last event."""
    UNREADABLE = "usage_unreadable"
    """The answer was compressed although the request forbade it, so its usage is not counted."""
    BUDGET = "budget_reached"
    NO_PRICE = "no_price"
    MODEL = "model_not_allowed"
    NO_PROVIDER = "no_provider"
    NO_KEY = "no_key"
    KEY_REFUSED = "key_refused"
    """The provider refused the key, and the next provider of the route was asked."""
    BROKEN = "gateway_broken"
    NO_PASS = "no_pass"
    """The token belongs to no run, or its run has ended."""
    FOREIGN = "foreign_caller"
    """The request came from a web page, or names another host."""
    NO_SUCH_PATH = "no_such_path"
    METHOD = "wrong_method"
    BAD_REQUEST = "bad_request"
    """The gateway cannot read the request, or does not accept it."""
    SLOW_CALLER = "slow_caller"
    """The request did not arrive in time."""


@dataclass(frozen=True, kw_only=True)
class RequestEntry:
    """One finished request. Counts are tokens; `at` is when it ended, in seconds since 1970.

    A provider that was skipped because of its key gets a line of its own.
    """

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
    """The answer did not come to its end; the counts are those reported until then."""
    error: str


@dataclass(frozen=True, kw_only=True)
class LimitEntry:
    """What a provider reported about its limits."""

    at: float
    run: str
    provider: str
    status: int
    resets_at: float | None
    retry_after: float | None
    utilization: float | None
    """The used share of the window, from 0 to 1."""
    window: str


@dataclass(frozen=True, kw_only=True)
class RefusalEntry:
    """Refused requests whose caller is not known, or of which a run had too many for a line each."""

    at: float
    run: str
    """Empty where the caller is not known. The token that was sent is written nowhere."""
    status: int
    reason: str
    """The value of a RequestError."""
    times: int


Line = RequestEntry | LimitEntry | RefusalEntry


@dataclass(frozen=True)
class LedgerPosition:
    """How far a reader has read. The default is before the first line."""

    file: str = ""
    offset: int = 0


def facts_of(line: Line) -> dict[str, Any]:
    """The line as a JSON object."""
    match line:
        case RequestEntry():
            return {"version": VERSION, **vars(line)}
        case LimitEntry():
            return {"version": VERSION, "limit": vars(line)}
        case RefusalEntry():
            return {"version": VERSION, "refused": vars(line)}


def decode(text: bytes) -> Line | None:
    """The line; None if a kill cut it off, or a later release wrote it."""
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
    """The lines after a position, and the position behind them. Repeat until the position stays the same."""
    # List the files before reading any: a file with a successor gets no more lines.
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
        content = file.read(_MAX_READ)
        if len(content) == _MAX_READ and b"\n" not in content:
            content += file.readline()
    return content[: content.rfind(b"\n") + 1]


def _known(kind: type[Line], facts: dict[str, Any]) -> dict[str, Any]:
    return {name: facts[name] for name in kind.__dataclass_fields__}
