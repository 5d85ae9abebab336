"""Writes complete and streamed answers of the Gemini API: each event is an answer with the parts that are new."""

from __future__ import annotations

from dataclasses import replace

from legion.gateway.counting.counters import TokenCounts
from legion.gateway.dialects import errors, signatures
from legion.gateway.dialects.common import input_of
from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerStarted,
    Event,
    KeepAlive,
    ModelAnswer,
    PartEnded,
    PartGrew,
    PartKind,
    PartSigned,
    PartStarted,
    RequestInfo,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from legion.gateway.dialects.sse import sse_event
from legion.gateway.json_text import Json, dumps

STOP_NAMES = {
    StopReason.END: "STOP",
    StopReason.CALLS: "STOP",
    StopReason.LENGTH: "MAX_TOKENS",
    StopReason.SEQUENCE: "STOP",
    StopReason.REFUSAL: "SAFETY",
    StopReason.PAUSE: "STOP",
}


def write(answer: ModelAnswer, info: RequestInfo) -> Json:
    parts: list[Json] = []
    carried = ""
    for part in answer.parts:
        match part:
            case ThinkingPart():
                parts += [thought(part.text)] if part.text else []
                carried = carry(part) or carried
            case TextPart():
                parts.append({"text": part.text} | signed(carried))
                carried = ""
            case ToolCallPart():
                parts.append(call(part) | signed(carried))
                carried = ""
    facts = chunk(parts, id=answer.id, model=answer.model, finish=STOP_NAMES[answer.stop])
    return facts | {"usageMetadata": usage_facts(answer.usage)}


def chunk(parts: list[Json], *, id: str, model: str, finish: str = "") -> Json:
    """An answer, or a piece of one, with these parts."""
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    candidate |= {"finishReason": finish} if finish else {}
    return {"candidates": [candidate], "modelVersion": model, "responseId": id}


def thought(text: str) -> Json:
    return {"text": text, "thought": True}


def call(part: ToolCallPart) -> Json:
    return {"functionCall": {"id": part.id, "name": part.name, "args": input_of(part)}}


def carry(part: ThinkingPart) -> str:
    """Thinking that a provider wants back, for the signature of the part behind it: callers keep that unread."""
    return signatures.packed(part.text, part.signature) if signatures.is_anthropic(part.signature) else ""


def signed(carried: str) -> Json:
    return {"thoughtSignature": carried} if carried else {}


def usage_facts(usage: TokenCounts) -> Json:
    read = usage.input + usage.cache_read + usage.cache_write
    return {
        "promptTokenCount": read,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": read + usage.output,
        "cachedContentTokenCount": usage.cache_read,
    }


class GeminiWriter:
    """A call is written when it is complete: the dialect has no pieces of calls."""

    def __init__(self, info: RequestInfo) -> None:
        self._id = ""
        self._model = info.model
        self._kinds: dict[int, PartKind] = {}
        self._calls: dict[int, ToolCallPart] = {}
        self._thoughts: dict[int, str] = {}
        self._carried = ""

    def write(self, event: Event) -> bytes:
        match event:
            case PartGrew():
                return self._growth(event)
            case AnswerStarted():
                self._id, self._model = event.id, event.model
                return b""
            case PartStarted():
                self._kinds[event.index] = event.kind
                if event.kind is PartKind.CALL:
                    self._calls[event.index] = ToolCallPart(id=event.id, name=event.name, input="")
                return b""
            case PartSigned():
                part = ThinkingPart(text=self._thoughts.pop(event.index, ""), signature=event.signature)
                self._carried = carry(part) or self._carried
                return b""
            case PartEnded():
                done = self._calls.pop(event.index, None)
                return b"" if done is None else self._chunk(call(done) | self._take_carried())
            case AnswerEnded():
                facts = chunk([], id=self._id, model=self._model, finish=STOP_NAMES[event.stop])
                return sse_event(dumps(facts | {"usageMetadata": usage_facts(event.usage)}))
            case KeepAlive():
                # A comment, which other dialects use, is taken for a broken event by Google's own library.
                return sse_event(dumps(chunk([], id=self._id, model=self._model)))
            case AnswerFailed():
                return sse_event(dumps(errors.gemini(event.error)))

    def _growth(self, event: PartGrew) -> bytes:
        match self._kinds[event.index]:
            case PartKind.TEXT:
                return self._chunk({"text": event.text} | self._take_carried())
            case PartKind.THINKING:
                self._thoughts[event.index] = self._thoughts.get(event.index, "") + event.text
                return self._chunk(thought(event.text))
            case PartKind.CALL:
                known = self._calls[event.index]
                self._calls[event.index] = replace(known, input=known.input + event.text)
                return b""

    def _take_carried(self) -> Json:
        carried, self._carried = self._carried, ""
        return signed(carried)

    def _chunk(self, part: Json) -> bytes:
        return sse_event(dumps(chunk([part], id=self._id, model=self._model)))
