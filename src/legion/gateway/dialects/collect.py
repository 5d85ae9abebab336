"""A streamed answer as a whole one, and back: for providers that answer otherwise than they were asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from legion.gateway.dialects.messages import (
    AnswerBegun,
    AnswerEnded,
    AnswerFailed,
    Event,
    KeepAlive,
    ModelAnswer,
    ModelFailed,
    PartBegun,
    PartEnded,
    PartGrew,
    PartKind,
    PartSealed,
    Said,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from legion.gateway.json_text import UnreadableMessage


def events_of(answer: ModelAnswer) -> Iterator[Event]:
    yield AnswerBegun(id=answer.id, model=answer.model, usage=answer.usage)
    for index, part in enumerate(answer.parts):
        match part:
            case TextPart():
                yield PartBegun(index=index, kind=PartKind.TEXT)
                yield PartGrew(index, part.text)
            case ThinkingPart():
                yield PartBegun(index=index, kind=PartKind.THINKING)
                if part.text:
                    yield PartGrew(index, part.text)
                if part.seal:
                    yield PartSealed(index=index, seal=part.seal)
            case ToolCallPart():
                yield PartBegun(index=index, kind=PartKind.CALL, id=part.id, name=part.name)
                yield PartGrew(index, part.input)
        yield PartEnded(index=index)
    yield AnswerEnded(stop=answer.stop, sequence=answer.sequence, usage=answer.usage)


def gathered(events: Iterable[Event]) -> ModelAnswer:
    """Raises ModelFailed where the stream ends with an error, and Unreadable where it has no end."""
    parts: dict[int, Said] = {}
    answer = ModelAnswer(id="", model="", parts=(), stop=StopReason.END)
    for event in events:
        match event:
            case AnswerBegun():
                answer = replace(answer, id=event.id, model=event.model)
            case PartBegun():
                parts[event.index] = _begun(event)
            case PartGrew():
                parts[event.index] = _grown(parts[event.index], event.text)
            case PartSealed():
                parts[event.index] = ThinkingPart(text=_text(parts[event.index]), seal=event.seal)
            case AnswerFailed():
                raise ModelFailed(event.fault)
            case AnswerEnded():
                said = tuple(parts[index] for index in sorted(parts))
                return replace(answer, parts=said, stop=event.stop, sequence=event.sequence, usage=event.usage)
            case PartEnded() | KeepAlive():
                pass
    raise UnreadableMessage("the stream broke off")


def _begun(event: PartBegun) -> Said:
    match event.kind:
        case PartKind.TEXT:
            return TextPart(text="")
        case PartKind.THINKING:
            return ThinkingPart()
        case PartKind.CALL:
            return ToolCallPart(id=event.id, name=event.name, input="")


def _grown(part: Said, text: str) -> Said:
    match part:
        case ToolCallPart():
            return replace(part, input=part.input + text)
        case TextPart() | ThinkingPart():
            return replace(part, text=part.text + text)


def _text(part: Said) -> str:
    return "" if isinstance(part, ToolCallPart) else part.text
