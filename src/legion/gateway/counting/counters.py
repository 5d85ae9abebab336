"""Counters that read usage from Anthropic's answers as they pass: server-sent events cut at any byte, or one body."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

_MAX_LINE = 1 << 20
_MAX_BODY = 32 << 20
_ERROR_NAME = re.compile(r"[a-z0-9_]{1,64}")
_INTERESTING = (b'"usage"', b'"error"', b'"message_stop"')


@dataclass(frozen=True, kw_only=True)
class TokenCounts:
    """Numbers of tokens."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    """The part of `cache_write` that lasts an hour."""


NO_TOKENS = TokenCounts()


@dataclass
class AnswerSummary:
    """What an answer has reported so far."""

    usage: TokenCounts = NO_TOKENS
    model: str = ""
    error: str = ""
    """The provider's name for the error; never its text, which may repeat the key."""
    complete: bool = False


class HasSummary(Protocol):
    """Holds what an answer has reported so far."""

    summary: AnswerSummary


class Counter(HasSummary, Protocol):
    def feed(self, piece: bytes) -> None: ...

    def end(self) -> None:
        """The answer has ended."""
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
        if len(self._rest) > _MAX_LINE:
            # Events with usage are short, so this line is content and can be dropped.
            self._rest = b""
        for begin in sorted({at for name in _INTERESTING for at in _lines_with(name, data, last)}):
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
    """One JSON document: a message or an error."""

    def __init__(self) -> None:
        self.summary = AnswerSummary()
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= _MAX_BODY:
            self._pieces.append(piece)

    def end(self) -> None:
        self.summary.complete = True
        if self._size > _MAX_BODY:
            return
        document = parse(b"".join(self._pieces))
        if document is None:
            return
        if document.get("type") == "error":
            note_error(self.summary, document.get("error"))
        else:
            _message(self.summary, document)


def _lines_with(name: bytes, data: bytes, end: int) -> Iterator[int]:
    """Offsets of the lines that hold the name. Most pieces hold none and cost one search."""
    at = data.find(name, 0, end)
    while at >= 0:
        yield data.rfind(b"\n", 0, at) + 1
        at = data.find(name, data.index(b"\n", at), end)


def parse(text: bytes) -> dict[str, Any] | None:
    """The JSON object; None for anything else."""
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
    """The larger of old and new counts: each report is a total, and some leave fields out or at 0."""
    if not isinstance(usage, dict):
        return old
    lasting = usage.get("cache_creation")
    return TokenCounts(
        input=max(old.input, number(usage.get("input_tokens"))),
        output=max(old.output, number(usage.get("output_tokens"))),
        cache_read=max(old.cache_read, number(usage.get("cache_read_input_tokens"))),
        cache_write=max(old.cache_write, number(usage.get("cache_creation_input_tokens"))),
        cache_write_1h=max(
            old.cache_write_1h, number(lasting.get("ephemeral_1h_input_tokens")) if isinstance(lasting, dict) else 0
        ),
    )


def number(value: object) -> int:
    """A positive count, else 0."""
    return value if isinstance(value, int) and value > 0 else 0


def note_error(summary: AnswerSummary, error: object) -> None:
    kind = error.get("type") if isinstance(error, dict) else None
    summary.error = kind if isinstance(kind, str) and _ERROR_NAME.fullmatch(kind) else "unknown_error"
