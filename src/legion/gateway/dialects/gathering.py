"""A streamed answer as a whole one, and back: for providers that answer otherwise than they were asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from legion.gateway.dialects.inner import (
    Answer,
    Begun,
    Call,
    Ended,
    Event,
    Failed,
    Kind,
    ModelFailed,
    PartBegun,
    PartEnded,
    PartGrew,
    PartSealed,
    Said,
    Stop,
    Text,
    Thinking,
    Unreadable,
    Waiting,
)


def events_of(answer: Answer) -> Iterator[Event]:
    yield Begun(id=answer.id, model=answer.model, usage=answer.usage)
    for index, part in enumerate(answer.parts):
        match part:
            case Text():
                yield PartBegun(index=index, kind=Kind.TEXT)
                yield PartGrew(index, part.text)
            case Thinking():
                yield PartBegun(index=index, kind=Kind.THINKING)
                if part.text:
                    yield PartGrew(index, part.text)
                if part.seal:
                    yield PartSealed(index=index, seal=part.seal)
            case Call():
                yield PartBegun(index=index, kind=Kind.CALL, id=part.id, name=part.name)
                yield PartGrew(index, part.input)
        yield PartEnded(index=index)
    yield Ended(stop=answer.stop, sequence=answer.sequence, usage=answer.usage)


def gathered(events: Iterable[Event]) -> Answer:
    """Raises ModelFailed where the stream ends with an error, and Unreadable where it has no end."""
    parts: dict[int, Said] = {}
    answer = Answer(id="", model="", parts=(), stop=Stop.END)
    for event in events:
        match event:
            case Begun():
                answer = replace(answer, id=event.id, model=event.model)
            case PartBegun():
                parts[event.index] = _begun(event)
            case PartGrew():
                parts[event.index] = _grown(parts[event.index], event.text)
            case PartSealed():
                parts[event.index] = Thinking(text=_text(parts[event.index]), seal=event.seal)
            case Failed():
                raise ModelFailed(event.fault)
            case Ended():
                said = tuple(parts[index] for index in sorted(parts))
                return replace(answer, parts=said, stop=event.stop, sequence=event.sequence, usage=event.usage)
            case PartEnded() | Waiting():
                pass
    raise Unreadable("the stream broke off")


def _begun(event: PartBegun) -> Said:
    match event.kind:
        case Kind.TEXT:
            return Text(text="")
        case Kind.THINKING:
            return Thinking()
        case Kind.CALL:
            return Call(id=event.id, name=event.name, input="")


def _grown(part: Said, text: str) -> Said:
    match part:
        case Call():
            return replace(part, input=part.input + text)
        case Text() | Thinking():
            return replace(part, text=part.text + text)


def _text(part: Said) -> str:
    return "" if isinstance(part, Call) else part.text
