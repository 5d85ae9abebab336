"""Checks the order of events in a stream and the types in a request, so that the writers can rely on them.

An answer starts once, before its parts. A part starts once, with the next number, grows only while it is open, and ends
before the answer does. Every text is a string.
"""

from __future__ import annotations

from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerStarted,
    DocumentPart,
    Event,
    ImagePart,
    KeepAlive,
    ModelRequest,
    Part,
    PartEnded,
    PartGrew,
    PartSigned,
    PartStarted,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from legion.gateway.json_text import UnreadableMessage


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
