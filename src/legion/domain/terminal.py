"""The stream between the runner that holds a terminal and those that look at it: frames, bytes in and frames out.

A viewer sends a hello with its size first, then keys and sizes. The runner sends the last output again, then what the
program prints, and at its end how it ended. Every frame is one byte for its kind, four for its length, then its data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from legion.domain.text import to_json

LONGEST_FRAME = 1 << 20
_HEAD = 5
"""Bytes: the kind, then the length."""
_SIZE = 4
"""Bytes: columns, then rows."""
MOST = 1000
"""Columns or rows of the largest terminal."""


class FrameKind(Enum):
    HELLO = b"h"
    """From a viewer, first: its size, and whether it only looks."""
    KEYS = b"k"
    """From a viewer: what was typed."""
    SIZE = b"s"
    """From a viewer: its terminal has another size now."""
    OUTPUT = b"o"
    """From the runner: what the program printed."""
    END = b"e"
    """From the runner, last: the program has ended."""


class BadFrame(Exception):
    """The other side does not speak this protocol."""


@dataclass(frozen=True, kw_only=True)
class TerminalSize:
    columns: int = 80
    rows: int = 24

    @property
    def usable(self) -> TerminalSize:
        """Within what programs can draw on; a terminal without a size reports zero."""
        return TerminalSize(columns=min(max(self.columns, 2), MOST), rows=min(max(self.rows, 2), MOST))

    def to_bytes(self) -> bytes:
        return self.usable.columns.to_bytes(2) + self.usable.rows.to_bytes(2)

    @staticmethod
    def from_bytes(data: bytes) -> TerminalSize:
        if len(data) != _SIZE:
            raise BadFrame("A size has four bytes.")
        return TerminalSize(columns=int.from_bytes(data[:2]), rows=int.from_bytes(data[2:])).usable


@dataclass(frozen=True, kw_only=True)
class Hello:
    size: TerminalSize
    only_looks: bool = False
    """Its keys and its size are ignored."""

    def to_bytes(self) -> bytes:
        facts = {"columns": self.size.columns, "rows": self.size.rows, "only_looks": self.only_looks}
        return to_json(facts).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Hello:
        facts = _facts(data)
        columns, rows = facts.get("columns"), facts.get("rows")
        if not isinstance(columns, int) or not isinstance(rows, int):
            raise BadFrame("A hello holds columns and rows.")
        size = TerminalSize(columns=columns, rows=rows).usable
        return Hello(size=size, only_looks=facts.get("only_looks") is True)


@dataclass(frozen=True, kw_only=True)
class TerminalEnd:
    exit_code: int | None
    message: str

    def to_bytes(self) -> bytes:
        return to_json({"exit_code": self.exit_code, "message": self.message}).encode()

    @staticmethod
    def from_bytes(data: bytes) -> TerminalEnd:
        facts = _facts(data)
        code = facts.get("exit_code")
        return TerminalEnd(exit_code=code if isinstance(code, int) else None, message=str(facts.get("message", "")))


def frame(kind: FrameKind, data: bytes = b"") -> bytes:
    return kind.value + len(data).to_bytes(4) + data


class FrameReader:
    """Takes bytes as they arrive and returns the frames that are complete."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[FrameKind, bytes]]:
        """Raises BadFrame at the first byte that is none of ours."""
        self._bytes += data
        while len(self._bytes) >= _HEAD:
            word, length = bytes(self._bytes[:1]), int.from_bytes(self._bytes[1:_HEAD])
            try:
                kind = FrameKind(word)
            except ValueError:
                raise BadFrame(f"There is no frame of the kind {word!r}.") from None
            if length > LONGEST_FRAME:
                raise BadFrame(f"A frame of {length} bytes is longer than {LONGEST_FRAME}.")
            if len(self._bytes) < _HEAD + length:
                return
            content = bytes(self._bytes[_HEAD : _HEAD + length])
            del self._bytes[: _HEAD + length]
            yield kind, content


def _facts(data: bytes) -> dict[str, object]:
    try:
        facts = json.loads(data)
    except ValueError:
        raise BadFrame("The frame is not JSON.") from None
    if not isinstance(facts, dict):
        raise BadFrame("The frame is not an object.")
    return facts
