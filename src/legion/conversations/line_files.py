"""Reads a file of JSON lines from an offset on, line by line, with any line broken or still being written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import orjson

from legion.conversations.conversation import ConversationEntry, ConversationFacts
from legion.conversations.formats import opencode
from legion.conversations.formats.lines import LineFormat

LONGEST_LINE = 64 << 20
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError, RecursionError)
SEPARATOR = "#"
"""Between opencode's database and a session in it."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one step of reading found."""

    entries: list[ConversationEntry]
    offset: int
    """Behind the last complete line that was read."""


def read_part(path: Path, format: LineFormat, facts: ConversationFacts, offset: int, most: int) -> Part:
    """Read on for at most `most` bytes, at least one line; the facts grow. Raises OSError."""
    entries: list[ConversationEntry] = []
    with path.open("rb") as file:
        file.seek(offset)
        end = offset + most
        while offset < end and (line := _line(file, facts)) is not None:
            offset, content = file.tell(), line
            if content and not content.startswith(format.unread):
                entries += _entries(content, format, facts)
    return Part(entries=entries, offset=offset)


def read_all(path: str, format: LineFormat | None) -> Iterator[ConversationEntry]:
    """Every entry of a conversation, complete. Raises OSError or UnreadableDatabase."""
    if format is None:
        place, _, id = path.rpartition(SEPARATOR)
        with opencode.opened(Path(place)) as database:
            found = opencode.read(database, id)
        yield from found[1] if found is not None else ()
        return
    file, offset = Path(path), 0
    facts = format.begin(file)
    while (part := read_part(file, format, facts, offset, 1 << 22)).offset > offset:
        yield from part.entries
        offset = part.offset


def _line(file: BinaryIO, facts: ConversationFacts) -> bytes | None:
    """The next complete line, without its end; empty where it is too long; None where there is none yet."""
    line = file.readline(LONGEST_LINE)
    if line.endswith(b"\n"):
        return line.rstrip()
    if len(line) < LONGEST_LINE:
        return None
    while line and not line.endswith(b"\n"):
        line = file.readline(LONGEST_LINE)
    if line:
        facts.broken += 1
    return b"" if line else None


def _entries(content: bytes, format: LineFormat, facts: ConversationFacts) -> list[ConversationEntry]:
    try:
        line = _parsed(content)
        if not isinstance(line, dict):
            raise TypeError(line)
        return list(format.take(line, facts))
    except _MALFORMED:
        facts.broken += 1
        return []


def _parsed(content: bytes) -> object:
    try:
        found: object = orjson.loads(content)
    except ValueError:
        # Node writes half of a surrogate pair where it cuts a text.
        found = json.loads(content.decode("utf-8", "replace"))
    return found
