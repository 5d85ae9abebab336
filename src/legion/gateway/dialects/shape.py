"""The shape that every stream of events has, and every request, so that whoever writes them can rely on it.

An answer begins once, before its parts. A part begins once, with the next number, grows only while it is open, and ends
before the answer does. What an answer says are texts.
"""

from __future__ import annotations

from legion.gateway.dialects.messages import (
    AnswerBegun,
    AnswerEnded,
    AnswerFailed,
    DocumentPart,
    Event,
    ImagePart,
    KeepAlive,
    ModelRequest,
    Part,
    PartBegun,
    PartEnded,
    PartGrew,
    PartSigned,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from legion.gateway.json_text import UnreadableMessage


class Shape:
    def __init__(self) -> None:
        self._begun = False
        self._parts = 0
        self._open: set[int] = set()

    def take(self, event: Event) -> list[Event]:
        """The event, after what was missing before it. Raises Unreadable for one that cannot come now."""
        match event:
            case PartGrew():
                self.grow(event)
            case PartSigned():
                self._is_open(event.index, event.signature)
            case PartBegun():
                if not self._begun or event.index != self._parts:
                    raise UnreadableMessage("a part begins twice or too early")
                _are_texts(event.id, event.name)
                self._open.add(event.index)
                self._parts += 1
            case PartEnded():
                self._is_open(event.index)
                self._open.discard(event.index)
            case AnswerBegun():
                if self._begun:
                    raise UnreadableMessage("the answer begins twice")
                _are_texts(event.id, event.model)
                self._begun = True
            case AnswerEnded():
                if not self._begun:
                    raise UnreadableMessage("the answer ends without a beginning")
                return [*(PartEnded(index=index) for index in sorted(self._open)), event]
            case AnswerFailed() | KeepAlive():
                pass
        return [event]

    def grow(self, event: PartGrew) -> None:
        """As `take`, for what comes most often and misses nothing before it."""
        if event.index not in self._open or not isinstance(event.text, str):
            self._is_open(event.index, event.text)

    def _is_open(self, index: int, text: str = "") -> None:
        if index not in self._open:
            raise UnreadableMessage("a part goes on that has not begun, or has ended")
        _are_texts(text)


def check_request(request: ModelRequest) -> None:
    """Raises Unreadable where something that has to be a text is none."""
    _are_texts(request.model, request.chosen, request.user, request.conversation, *request.stops)
    for tool in request.tools:
        _are_texts(tool.name, tool.description)
    for one in request.system:
        _are_texts(one.text)
    for message in request.messages:
        for part in message.parts:
            if not isinstance(part, TextPart) or not isinstance(part.text, str):
                _check_part(part)


def _check_part(part: Part) -> None:
    match part:
        case TextPart():
            _are_texts(part.text)
        case ThinkingPart():
            _are_texts(part.text, part.signature)
        case ToolCallPart():
            _are_texts(part.id, part.name, part.input)
        case ImagePart():
            _are_texts(part.url)
        case DocumentPart():
            _are_texts(part.url, part.name)
        case ToolResultPart():
            _are_texts(part.call)
            for one in part.content:
                _check_part(one)


def _are_texts(*values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise UnreadableMessage("a text is none")
