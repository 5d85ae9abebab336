"""All dialects, and the functions that read and write them: the interface of this package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from legion.gateway.dialects import errors
from legion.gateway.dialects.anthropic import request as anthropic_request
from legion.gateway.dialects.anthropic import stream
from legion.gateway.dialects.chat import answer as chat_answer
from legion.gateway.dialects.chat import request as chat_request
from legion.gateway.dialects.chat.stream import ChatReader, ChatWriter
from legion.gateway.dialects.common import events_of, original_names
from legion.gateway.dialects.gemini import request as gemini_request
from legion.gateway.dialects.gemini.stream import GeminiWriter, write
from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerStarted,
    DocumentPart,
    Event,
    ImagePart,
    KeepAlive,
    ModelAnswer,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    Part,
    PartEnded,
    PartGrew,
    PartSigned,
    PartStarted,
    RequestInfo,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from legion.gateway.dialects.responses import answer as responses_answer
from legion.gateway.dialects.responses import request as responses_request
from legion.gateway.dialects.responses.stream import ResponsesReader, ResponsesWriter
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
        anthropic_request.read, stream.write, stream.AnthropicWriter, errors.anthropic, errors.status_for_anthropic
    ),
    Dialect.CHAT: _CallerFunctions(
        chat_request.read, chat_answer.write, ChatWriter, errors.openai, errors.status_for_openai
    ),
    Dialect.RESPONSES: _CallerFunctions(
        responses_request.read, responses_answer.write, ResponsesWriter, errors.openai, errors.status_for_openai
    ),
    Dialect.GEMINI: _CallerFunctions(gemini_request.read, write, GeminiWriter, errors.gemini, errors.status_for_gemini),
}
_PROVIDERS = {
    Dialect.ANTHROPIC: _ProviderFunctions(anthropic_request.write, stream.read, stream.AnthropicReader),
    Dialect.CHAT: _ProviderFunctions(chat_request.write, chat_answer.read, ChatReader),
    Dialect.RESPONSES: _ProviderFunctions(responses_request.write, responses_answer.read, ResponsesReader),
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
        if not self.over and isinstance(self._reader, ChatReader) and self._reader.finished:
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
            return self._reader.done() if isinstance(self._reader, ChatReader) else []
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


# Checks the order of events in a stream and the types in a request, so that the writers can rely on them.
#
# An answer starts once, before its parts. A part starts once, with the next number, grows only while it is open, and
# ends before the answer does. Every text is a string.


class Shape:
    def __init__(self) -> None:
        self._started = False
        self._parts = 0
        self._open: set[int] = set()

    def take(self, event: Event) -> list[Event]:
        """The event, preceded by events that were missing. Raises UnreadableMessage for one that cannot come now."""
        match event:
            case PartGrew():
                self.grow(event)
            case PartSigned():
                self._check_open(event.index, event.signature)
            case PartStarted():
                if not self._started or event.index != self._parts:
                    raise UnreadableMessage("a part starts twice or too early")
                _check_texts(event.id, event.name)
                self._open.add(event.index)
                self._parts += 1
            case PartEnded():
                self._check_open(event.index)
                self._open.discard(event.index)
            case AnswerStarted():
                if self._started:
                    raise UnreadableMessage("the answer starts twice")
                _check_texts(event.id, event.model)
                self._started = True
            case AnswerEnded():
                if not self._started:
                    raise UnreadableMessage("the answer ends without a start")
                return [*(PartEnded(index=index) for index in sorted(self._open)), event]
            case AnswerFailed() | KeepAlive():
                pass
        return [event]

    def grow(self, event: PartGrew) -> None:
        """As `take`, for the most frequent event."""
        if event.index not in self._open or not isinstance(event.text, str):
            self._check_open(event.index, event.text)

    def _check_open(self, index: int, text: str = "") -> None:
        if index not in self._open:
            raise UnreadableMessage("a part continues that has not started, or has ended")
        _check_texts(text)


def check_request(request: ModelRequest) -> None:
    """Raises UnreadableMessage where a text is not a string, or the limit of tokens not a number."""
    if not isinstance(request.max_tokens, int | float | None):
        raise UnreadableMessage("the limit of tokens is not a number")
    _check_texts(request.model, request.chosen, request.user, request.conversation, *request.stops)
    for tool in request.tools:
        _check_texts(tool.name, tool.description)
    for one in request.system:
        _check_texts(one.text)
    for message in request.messages:
        for part in message.parts:
            if not isinstance(part, TextPart) or not isinstance(part.text, str):
                _check_part(part)


def _check_part(part: Part) -> None:
    match part:
        case TextPart():
            _check_texts(part.text)
        case ThinkingPart():
            _check_texts(part.text, part.signature)
        case ToolCallPart():
            _check_texts(part.id, part.name, part.input)
        case ImagePart():
            _check_texts(part.url)
        case DocumentPart():
            _check_texts(part.url, part.name)
        case ToolResultPart():
            _check_texts(part.call)
            for one in part.content:
                _check_part(one)


def _check_texts(*values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise UnreadableMessage("a field that must be a text is not")
