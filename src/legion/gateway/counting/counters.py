"""Reads usage out of answers while they pass by: server-sent events cut at any byte, or one JSON body.

Knows Anthropic's field names, and nothing of prices, runs or sockets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

_LONGEST_LINE = 1 << 20
_LONGEST_BODY = 32 << 20
_WORD = re.compile(r"[a-z0-9_]{1,64}")
_TELLING = (b'"usage"', b'"error"', b'"message_stop"')


@dataclass(frozen=True, kw_only=True)
class TokenCounts:
    """Tokens."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    """How many of the writes last an hour."""


NO_TOKENS = TokenCounts()


@dataclass
class AnswerSummary:
    """What an answer has told so far."""

    usage: TokenCounts = NO_TOKENS
    model: str = ""
    error: str = ""
    """The provider's own word for what went wrong; never its text, which may repeat the key."""
    complete: bool = False


class HasSummary(Protocol):
    """Knows what an answer has told so far."""

    summary: AnswerSummary


class Counter(HasSummary, Protocol):
    def feed(self, piece: bytes) -> None: ...

    def end(self) -> None:
        """The answer came to its end."""
        ...


class StreamCounter:
    """Server-sent events."""

    def __init__(self) -> None:
        self.summary = AnswerSummary()
        self._rest = b""

    def feed(self, piece: bytes) -> None:
        data = self._rest + piece if self._rest else piece
        last = data.rfind(b"\n") + 1
        self._rest = data[last:]
        if len(self._rest) > _LONGEST_LINE:
            # Content, since what tells of usage is short. The rest of the line tells nothing either.
            self._rest = b""
        for begin in sorted({at for word in _TELLING for at in _lines_with(word, data, last)}):
            if data.startswith(b"data:", begin):
                self._read(data[begin + 5 : data.index(b"\n", begin)])

    def end(self) -> None:
        self.feed(b"\n")

    def _read(self, text: bytes) -> None:
        event = parse(text)
        if event is None:
            return
        match event.get("type"):
            case "message_start":
                _message(self.summary, event.get("message"))
            case "message_delta":
                _count(self.summary, event.get("usage"))
            case "message_stop":
                self.summary.complete = True
            case "error":
                note_error(self.summary, event.get("error"))


class BodyCounter:
    """One JSON document: a whole message, or an error."""

    def __init__(self) -> None:
        self.summary = AnswerSummary()
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= _LONGEST_BODY:
            self._pieces.append(piece)

    def end(self) -> None:
        self.summary.complete = True
        if self._size > _LONGEST_BODY:
            return
        document = parse(b"".join(self._pieces))
        if document is None:
            return
        if document.get("type") == "error":
            note_error(self.summary, document.get("error"))
        else:
            _message(self.summary, document)


def _lines_with(word: bytes, data: bytes, end: int) -> Iterator[int]:
    """Where the lines begin that hold the word. Most of a stream holds none, and is passed over in one step."""
    at = data.find(word, 0, end)
    while at >= 0:
        yield data.rfind(b"\n", 0, at) + 1
        at = data.find(word, data.index(b"\n", at), end)


def parse(text: bytes) -> dict[str, Any] | None:
    """The object, where it is one."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _message(summary: AnswerSummary, message: object) -> None:
    if isinstance(message, dict):
        if isinstance(message.get("model"), str):
            summary.model = message["model"]
        _count(summary, message.get("usage"))


def _count(summary: AnswerSummary, usage: object) -> None:
    summary.usage = anthropic_usage(usage, summary.usage)


def anthropic_usage(usage: object, old: TokenCounts) -> TokenCounts:
    """Every report is of all so far, and some leave fields out or at 0: the largest holds."""
    if not isinstance(usage, dict):
        return old
    lasting = usage.get("cache_creation")
    return TokenCounts(
        input=max(old.input, number(usage.get("input_tokens"))),
        output=max(old.output, number(usage.get("output_tokens"))),
        cache_read=max(old.cache_read, number(usage.get("cache_read_input_tokens"))),
        cache_write=max(old.cache_write, number(usage.get("cache_creation_input_tokens"))),
        cache_write_1h=max(
            old.cache_write_1h,
            number(lasting.get("ephemeral_1h_input_tokens")) if isinstance(lasting, dict) else 0,
        ),
    )


def number(value: object) -> int:
    """A count, where it is one."""
    return value if isinstance(value, int) and value > 0 else 0


def note_error(summary: AnswerSummary, error: object) -> None:
    kind = error.get("type") if isinstance(error, dict) else None
    summary.error = kind if isinstance(kind, str) and _WORD.fullmatch(kind) else "unknown_error"
