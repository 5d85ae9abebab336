"""A format of JSON lines: how a file starts, which lines matter, and what each adds to a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from legion.conversations.conversation import ConversationEntry, ConversationFacts, ConversationProgram

LONGEST_INPUT = 2000
"""Characters of a tool's input; a written file may be of any length."""
Line = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class LineFormat:
    program: ConversationProgram
    begin: Callable[[Path], ConversationFacts]
    """What the file's path says."""
    take: Callable[[Line, ConversationFacts], Iterable[ConversationEntry]]
    """Add a line to the facts, and yield its entries. Any exception that malformed data causes counts as broken."""
    unread: tuple[bytes, ...] = ()
    """Starts of lines that hold nothing of the conversation."""


def seconds(value: object) -> float:
    """An ISO time or a number of milliseconds, as seconds; 0 where it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 1000 if 0 < value < 1e15 else 0.0
    if not isinstance(value, str):
        return 0.0
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53 else 0


def text_of(content: object) -> str:
    """The text in a message's content, which is a text or a list of parts."""
    return content if isinstance(content, str) else "\n".join(texts(content))


def texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield part
            elif isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part["text"]


def call_text(tool: object, input: object) -> str:
    """A call in one text: the tool, then its input."""
    shown = input if isinstance(input, str) else json.dumps(input, ensure_ascii=False, default=str)
    return f"{tool}: {shown}"[:LONGEST_INPUT]
