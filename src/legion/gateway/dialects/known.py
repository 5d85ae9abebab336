"""All dialects, and how each is read and written. The one door to this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from legion.gateway.dialects import faults
from legion.gateway.dialects.anthropic import answer as anthropic_answer
from legion.gateway.dialects.anthropic import request as anthropic_request
from legion.gateway.dialects.anthropic import stream as anthropic_stream
from legion.gateway.dialects.chat import answer as chat_answer
from legion.gateway.dialects.chat import request as chat_request
from legion.gateway.dialects.chat import stream as chat_stream
from legion.gateway.dialects.gathering import events_of
from legion.gateway.dialects.inner import (
    Answer,
    Asked,
    Ended,
    Event,
    Failed,
    Fault,
    FaultKind,
    Json,
    PartGrew,
    Request,
    Unreadable,
)
from legion.gateway.dialects.jsons import loads
from legion.gateway.dialects.names import shortened
from legion.gateway.dialects.responses import answer as responses_answer
from legion.gateway.dialects.responses import request as responses_request
from legion.gateway.dialects.responses import stream as responses_stream
from legion.gateway.dialects.shape import Shape, check_request
from legion.gateway.dialects.sse import Splitter

_MISFIT = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What reading raises where something is missing, or is not what it should be."""


_ENDS = (Ended, Failed)
_DONE = b"[DONE]"
"""The last word of Chat Completions."""


class Dialect(Enum):
    ANTHROPIC = "anthropic"
    CHAT = "openai_chat"
    RESPONSES = "openai_responses"


class Writer(Protocol):
    def write(self, event: Event) -> bytes: ...


class _Reader(Protocol):
    def read(self, facts: Json) -> list[Event]: ...


@dataclass(frozen=True)
class _Words:
    read_request: Callable[[Json], Request]
    write_request: Callable[[Request], Json]
    read_answer: Callable[[Json, Asked], Answer]
    write_answer: Callable[[Answer, Asked], Json]
    reader: Callable[[Asked], _Reader]
    writer: Callable[[Asked], Writer]
    write_fault: Callable[[Fault], Json]
    status: Callable[[Fault], int]


_DIALECTS = {
    Dialect.ANTHROPIC: _Words(
        anthropic_request.read,
        anthropic_request.write,
        anthropic_answer.read,
        anthropic_answer.write,
        anthropic_stream.Reader,
        anthropic_stream.Writer,
        faults.anthropic,
        faults.status_for_anthropic,
    ),
    Dialect.CHAT: _Words(
        chat_request.read,
        chat_request.write,
        chat_answer.read,
        chat_answer.write,
        chat_stream.Reader,
        chat_stream.Writer,
        faults.openai,
        faults.status_for_openai,
    ),
    Dialect.RESPONSES: _Words(
        responses_request.read,
        responses_request.write,
        responses_answer.read,
        responses_answer.write,
        responses_stream.Reader,
        responses_stream.Writer,
        faults.openai,
        faults.status_for_openai,
    ),
}


def read_request(dialect: Dialect, facts: Json) -> Request:
    """Raises Unreadable."""
    try:
        request = _DIALECTS[dialect].read_request(facts)
        check_request(request)
        return request
    except _MISFIT as fault:
        raise Unreadable(f"a part of it is missing or of another kind ({_told(fault)})") from None


def write_request(dialect: Dialect, request: Request) -> Json:
    """Raises Unreadable where a part turns out not to be what it should."""
    try:
        return _DIALECTS[dialect].write_request(request)
    except _MISFIT as fault:
        raise Unreadable(f"a part of it is of another kind ({_told(fault)})") from None


def asked(request: Request, at: int) -> Asked:
    """What is needed of a request when its answer comes."""
    return Asked(
        model=request.model,
        free=frozenset(tool.name for tool in request.tools if tool.schema is None),
        names=shortened(request.tools),
        count_stream=request.count_stream,
        at=at,
    )


def read_answer(dialect: Dialect, facts: Json, asked: Asked) -> Answer:
    """Raises Unreadable, and ModelFailed for an answer that is an error."""
    try:
        answer = _DIALECTS[dialect].read_answer(facts, asked)
        # What can be streamed can be written.
        shape = Shape()
        for event in events_of(answer):
            shape.take(event)
        return answer
    except _MISFIT as fault:
        raise Unreadable(f"a part of it is missing or of another kind ({_told(fault)})") from None


def write_answer(dialect: Dialect, answer: Answer, asked: Asked) -> Json:
    return _DIALECTS[dialect].write_answer(answer, asked)


def write_fault(dialect: Dialect, fault: Fault) -> tuple[int, Json]:
    """Status and body."""
    words = _DIALECTS[dialect]
    return words.status(fault), words.write_fault(fault)


def writer(dialect: Dialect, asked: Asked) -> Writer:
    return _DIALECTS[dialect].writer(asked)


class StreamReader:
    """Bytes in, events out. The last event is always Ended or Failed, whatever comes; after it there is nothing."""

    def __init__(self, dialect: Dialect, asked: Asked) -> None:
        self._splitter = Splitter()
        self._reader = _DIALECTS[dialect].reader(asked)
        self._shape = Shape()
        self.over = False

    def feed(self, piece: bytes) -> list[Event]:
        return self._read(self._splitter.feed, piece)

    def end(self) -> list[Event]:
        """The provider sent its last byte."""
        events = self._read(lambda _: self._splitter.end(), b"")
        if not self.over and isinstance(self._reader, chat_stream.Reader) and self._reader.finished:
            events += self._read(lambda _: [_DONE], b"")
        if not self.over:
            self.over = True
            events.append(broken("the provider's answer broke off"))
        return events

    def _read(self, split: Callable[[bytes], list[bytes]], piece: bytes) -> list[Event]:
        events: list[Event] = []
        if self.over:
            return events
        try:
            for data in split(piece):
                for event in self._one(data):
                    if isinstance(event, PartGrew):
                        self._shape.grow(event)
                        events.append(event)
                    else:
                        events += self._shape.take(event)
                if events and isinstance(events[-1], _ENDS):
                    self.over = True
                    break
        except (Unreadable, *_MISFIT) as fault:
            self.over = True
            events.append(broken(f"the provider sent what cannot be read ({_told(fault)})"))
        return events

    def _one(self, data: bytes) -> list[Event]:
        if data == _DONE:
            return self._reader.done() if isinstance(self._reader, chat_stream.Reader) else []
        return self._reader.read(loads(data))


def broken(sentence: str) -> Failed:
    return Failed(fault=Fault(kind=FaultKind.API, message=f"legion: {sentence}; try again."))


def _told(fault: Exception) -> str:
    """The kind, and for what is missing its name; never a value, which may be anything."""
    match fault:
        case Unreadable():
            return str(fault)
        case KeyError() if fault.args and isinstance(fault.args[0], str):
            return f"{fault.args[0][:40]!r}"
        case _:
            return type(fault).__name__
