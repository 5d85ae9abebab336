"""The log of requests: one line of JSON each, written before the answer, so that aborted requests count too."""

from __future__ import annotations

import enum
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


class RequestKind(enum.Enum):
    """How a request was answered."""

    SCRIPTED = "scripted"
    TROUBLE = "trouble"
    """With an error of the script."""
    SIDE = "side"
    """A side job of the agent program, with a fixed answer."""
    COUNT = "count"
    """With the number of tokens."""
    UNEXPECTED = "unexpected"


@dataclass(frozen=True, kw_only=True)
class LogLine:
    at: float
    kind: RequestKind
    status: int
    """Status of the answer; 0 where the connection was dropped before one."""
    script: str = ""
    step: int | None = None
    """Counted from 1, as in messages about a script."""
    attempt: int | None = None
    conversation: str = ""
    agent: str = ""
    model: str = ""
    stream: bool = False
    note: str = ""


class RequestLog:
    def __init__(self, path: Path | None) -> None:
        # One appending write per line: lines of several processes do not mix.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._handle = None if path is None else os.open(path, flags, 0o600)

    def write(self, line: LogLine) -> None:
        if self._handle is not None:
            facts = asdict(line) | {"kind": line.kind.value}
            os.write(self._handle, f"{json.dumps(facts)}\n".encode())


def read(path: Path) -> list[LogLine]:
    """All complete lines."""
    lines = path.read_text("utf-8").rpartition("\n")[0].splitlines() if path.exists() else []
    return [LogLine(**(facts | {"kind": RequestKind(facts["kind"])})) for facts in map(json.loads, lines)]
