"""Converts a streamed answer into a complete one and back, for providers that do not answer as they were asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerPart,
    AnswerStarted,
    Event,
    KeepAlive,
    ModelAnswer,
    ModelFailed,
    PartEnded,
    PartGrew,
    PartKind,
    PartSigned,
    PartStarted,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from legion.gateway.json_text import UnreadableMessage


def events_of(answer: ModelAnswer) -> Iterator[Event]:
    yield AnswerStarted(id=answer.id, model=answer.model, usage=answer.usage)
    for index, part in enumerate(answer.parts):
        match part:
            case TextPart():
                yield PartStarted(index=index, kind=PartKind.TEXT)
                yield PartGrew(index, part.text)
            case ThinkingPart():
                yield PartStarted(index=index, kind=PartKind.THINKING)
                if part.text:
                    yield PartGrew(index, part.text)
                if part.signature:
                    yield PartSigned(index=index, signature=part.signature)
            case ToolCallPart():
                yield PartStarted(index=index, kind=PartKind.CALL, id=part.id, name=part.name)
                yield PartGrew(index, part.input)
        yield PartEnded(index=index)
    yield AnswerEnded(stop=answer.stop, sequence=answer.sequence, usage=answer.usage)


def collect_answer(events: Iterable[Event]) -> ModelAnswer:
    """The complete answer. Raises ModelFailed where the stream ends with an error, UnreadableMessage without an end."""
    parts: dict[int, AnswerPart] = {}
    answer = ModelAnswer(id="", model="", parts=(), stop=StopReason.END)
    for event in events:
        match event:
            case AnswerStarted():
                answer = replace(answer, id=event.id, model=event.model)
            case PartStarted():
                parts[event.index] = _started(event)
            case PartGrew():
                parts[event.index] = _grown(parts[event.index], event.text)
            case PartSigned():
                parts[event.index] = ThinkingPart(text=_text(parts[event.index]), signature=event.signature)
            case AnswerFailed():
                raise ModelFailed(event.error)
            case AnswerEnded():
                in_order = tuple(parts[index] for index in sorted(parts))
                return replace(answer, parts=in_order, stop=event.stop, sequence=event.sequence, usage=event.usage)
            case PartEnded() | KeepAlive():
                pass
    raise UnreadableMessage("the stream broke off")


def _started(event: PartStarted) -> AnswerPart:
    match event.kind:
        case PartKind.TEXT:
            return TextPart(text="")
        case PartKind.THINKING:
            return ThinkingPart()
        case PartKind.CALL:
            return ToolCallPart(id=event.id, name=event.name, input="")


def _grown(part: AnswerPart, text: str) -> AnswerPart:
    match part:
        case ToolCallPart():
            return replace(part, input=part.input + text)
        case TextPart() | ThinkingPart():
            return replace(part, text=part.text + text)


def _text(part: AnswerPart) -> str:
    return "" if isinstance(part, ToolCallPart) else part.text
