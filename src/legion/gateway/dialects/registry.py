"""All dialects, and the functions that read and write them: the interface of this package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from legion.gateway.dialects import errors
from legion.gateway.dialects.anthropic import answer as anthropic_answer
from legion.gateway.dialects.anthropic import request as anthropic_request
from legion.gateway.dialects.anthropic import stream
from legion.gateway.dialects.chat import answer as chat_answer
from legion.gateway.dialects.chat import request as chat_request
from legion.gateway.dialects.chat import stream as chat_stream
from legion.gateway.dialects.collect import events_of
from legion.gateway.dialects.common import original_names
from legion.gateway.dialects.gemini import answer as gemini_answer
from legion.gateway.dialects.gemini import request as gemini_request
from legion.gateway.dialects.gemini import stream as gemini_stream
from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    Event,
    ModelAnswer,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    PartGrew,
    RequestInfo,
)
from legion.gateway.dialects.responses import answer as responses_answer
from legion.gateway.dialects.responses import request as responses_request
from legion.gateway.dialects.responses import stream as responses_stream
from legion.gateway.dialects.shape import Shape, check_request
from legion.gateway.dialects.sse import Splitter
from legion.gateway.json_text import Json, UnreadableMessage, loads

_MISFIT = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""Raised while reading a message with a missing field, or one of the wrong type."""


_ENDS = (AnswerEnded, AnswerFailed)
_DONE = b"[DONE]"
"""The last event of Chat Completions."""


class Dialect(Enum):
    ANTHROPIC = "anthropic"
    CHAT = "openai_chat"
    RESPONSES = "openai_responses"
    GEMINI = "gemini"
    """Only callers speak it."""


class EventWriter(Protocol):
    def write(self, event: Event) -> bytes: ...


class _EventReader(Protocol):
    def read(self, facts: Json) -> list[Event]: ...


@dataclass(frozen=True)
class _CallerFunctions:
    """A dialect in which programs ask the gateway."""

    read_request: Callable[[Json], ModelRequest]
    write_answer: Callable[[ModelAnswer, RequestInfo], Json]
    writer: Callable[[RequestInfo], EventWriter]
    write_error: Callable[[ModelError], Json]
    status: Callable[[ModelError], int]


@dataclass(frozen=True)
class _ProviderFunctions:
    """A dialect in which the gateway asks providers."""

    write_request: Callable[[ModelRequest], Json]
    read_answer: Callable[[Json, RequestInfo], ModelAnswer]
    reader: Callable[[RequestInfo], _EventReader]


_CALLERS = {
    Dialect.ANTHROPIC: _CallerFunctions(
        anthropic_request.read,
        anthropic_answer.write,
        stream.AnthropicWriter,
        errors.anthropic,
        errors.status_for_anthropic,
    ),
    Dialect.CHAT: _CallerFunctions(
        chat_request.read, chat_answer.write, chat_stream.ChatWriter, errors.openai, errors.status_for_openai
    ),
    Dialect.RESPONSES: _CallerFunctions(
        responses_request.read,
        responses_answer.write,
        responses_stream.ResponsesWriter,
        errors.openai,
        errors.status_for_openai,
    ),
    Dialect.GEMINI: _CallerFunctions(
        gemini_request.read,
        gemini_answer.write,
        gemini_stream.GeminiWriter,
        errors.gemini,
        errors.status_for_gemini,
    ),
}
_PROVIDERS = {
    Dialect.ANTHROPIC: _ProviderFunctions(anthropic_request.write, anthropic_answer.read, stream.AnthropicReader),
    Dialect.CHAT: _ProviderFunctions(chat_request.write, chat_answer.read, chat_stream.ChatReader),
    Dialect.RESPONSES: _ProviderFunctions(
        responses_request.write, responses_answer.read, responses_stream.ResponsesReader
    ),
}
PROVIDER_DIALECTS = tuple(_PROVIDERS)


def read_request(dialect: Dialect, facts: Json) -> ModelRequest:
    """Raises UnreadableMessage."""
    try:
        request = _CALLERS[dialect].read_request(facts)
        check_request(request)
        return request
    except _MISFIT as fault:
        raise UnreadableMessage(_describe(fault)) from None


def write_request(dialect: Dialect, request: ModelRequest) -> Json:
    """Raises UnreadableMessage where a part cannot be written."""
    try:
        return _PROVIDERS[dialect].write_request(request)
    except _MISFIT as fault:
        raise UnreadableMessage(_describe(fault)) from None


def request_info(request: ModelRequest, at: int) -> RequestInfo:
    """The facts of a request that are needed to read and write its answer."""
    return RequestInfo(
        model=request.model,
        free=frozenset(tool.name for tool in request.tools if tool.schema is None),
        names=original_names(request.tools),
        count_stream=request.count_stream,
        at=at,
    )


def read_answer(dialect: Dialect, facts: Json, info: RequestInfo) -> ModelAnswer:
    """Raises UnreadableMessage, and ModelFailed for an answer that is an error."""
    try:
        answer = _PROVIDERS[dialect].read_answer(facts, info)
        # An answer that can be streamed can be written.
        shape = Shape()
        for event in events_of(answer):
            shape.take(event)
        return answer
    except _MISFIT as fault:
        raise UnreadableMessage(_describe(fault)) from None


def write_answer(dialect: Dialect, answer: ModelAnswer, info: RequestInfo) -> Json:
    return _CALLERS[dialect].write_answer(answer, info)


def write_error(dialect: Dialect, error: ModelError) -> tuple[int, Json]:
    """Status and body."""
    functions = _CALLERS[dialect]
    return functions.status(error), functions.write_error(error)


def writer(dialect: Dialect, info: RequestInfo) -> EventWriter:
    return _CALLERS[dialect].writer(info)


class StreamReader:
    """Bytes in, events out. The last event is always AnswerEnded or AnswerFailed, whatever comes."""

    def __init__(self, dialect: Dialect, info: RequestInfo) -> None:
        self._splitter = Splitter()
        self._reader = _PROVIDERS[dialect].reader(info)
        self._shape = Shape()
        self.over = False

    def feed(self, piece: bytes) -> list[Event]:
        return self._read(self._splitter.feed, piece)

    def end(self) -> list[Event]:
        """The provider sent its last byte."""
        events = self._read(lambda _: self._splitter.end(), b"")
        if not self.over and isinstance(self._reader, chat_stream.ChatReader) and self._reader.finished:
            events += self._read(lambda _: [_DONE], b"")
        if not self.over:
            self.over = True
            events.append(broken_off("the provider's answer broke off"))
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
        except (UnreadableMessage, *_MISFIT) as fault:
            self.over = True
            events.append(broken_off(f"the provider's answer cannot be read ({_describe(fault)})"))
        return events

    def _one(self, data: bytes) -> list[Event]:
        if data == _DONE:
            return self._reader.done() if isinstance(self._reader, chat_stream.ChatReader) else []
        return self._reader.read(loads(data))


def broken_off(sentence: str) -> AnswerFailed:
    return AnswerFailed(error=ModelError(kind=ModelErrorKind.API, message=f"legion: {sentence}; try again."))


def _describe(fault: Exception) -> str:
    """What is wrong with a message, without its values, which may be anything."""
    match fault:
        case UnreadableMessage():
            return str(fault)
        case KeyError() if fault.args and isinstance(fault.args[0], str):
            return f"{fault.args[0][:40]!r} is missing or not a known value"
        case IndexError():
            return "a list in it is empty"
        case _:
            return "a field in it has the wrong type or value"
