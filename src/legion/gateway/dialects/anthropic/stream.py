"""Reads and writes answers of Anthropic's Messages API, complete and streamed."""

from __future__ import annotations

import orjson

from legion.gateway.counting.counters import NO_TOKENS, TokenCounts, anthropic_usage
from legion.gateway.dialects import errors, signatures
from legion.gateway.dialects.common import input_of
from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerPart,
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

STOPS = {
    "end_turn": StopReason.END,
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "stop_sequence": StopReason.SEQUENCE,
    "refusal": StopReason.REFUSAL,
    "pause_turn": StopReason.PAUSE,
}
STOP_NAMES = {
    StopReason.END: "end_turn",
    StopReason.CALLS: "tool_use",
    StopReason.LENGTH: "max_tokens",
    StopReason.SEQUENCE: "stop_sequence",
    StopReason.REFUSAL: "refusal",
    StopReason.PAUSE: "pause_turn",
}


def read(facts: Json, info: RequestInfo) -> ModelAnswer:
    parts = (_part(block) for block in facts["content"])
    return ModelAnswer(
        id=facts["id"],
        model=facts["model"],
        parts=tuple(part for part in parts if part is not None),
        stop=STOPS.get(facts.get("stop_reason") or "", StopReason.END),
        sequence=facts.get("stop_sequence"),
        usage=anthropic_usage(facts.get("usage"), NO_TOKENS),
    )


def _part(block: Json) -> AnswerPart | None:
    match block["type"]:
        case "text":
            return TextPart(text=block["text"])
        case "thinking":
            return ThinkingPart(text=block["thinking"], signature=block.get("signature") or "")
        case "redacted_thinking":
            return ThinkingPart(signature=signatures.of_redacted(block["data"]))
        case "tool_use":
            return ToolCallPart(id=block["id"], name=block["name"], input=orjson.dumps(block["input"]).decode())
        case _:
            return None


def write(answer: ModelAnswer, info: RequestInfo) -> Json:
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [_block(part) for part in answer.parts],
        "stop_reason": STOP_NAMES[answer.stop],
        "stop_sequence": answer.sequence,
        "usage": usage_facts(answer.usage),
    }


def _block(part: AnswerPart) -> Json:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ThinkingPart():
            data = signatures.to_redacted(part.signature)
            if data is not None:
                return {"type": "redacted_thinking", "data": data}
            return {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case ToolCallPart():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": input_of(part)}


def usage_facts(usage: TokenCounts) -> Json:
    """All fields: some programs refuse a usage without them."""
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": max(0, usage.cache_write - usage.cache_write_1h),
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    }


_KNOWN = ("text", "thinking", "redacted_thinking", "tool_use")
_GROWTH = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class AnthropicReader:
    """Reads one event at a time. Blocks that only Anthropic's servers understand are left out."""

    def __init__(self, info: RequestInfo) -> None:
        self._usage = NO_TOKENS
        self._stop = StopReason.END
        self._sequence: str | None = None
        self._skipped: set[int] = set()
        self._open: dict[int, int] = {}
        """Maps the provider's index of an open part to ours, which has no gaps."""
        self._started = 0

    def read(self, facts: Json) -> list[Event]:
        match facts.get("type"):
            case "content_block_delta":
                return self._grown(facts["index"], facts["delta"])
            case "content_block_start":
                return self._part(facts["index"], facts["content_block"])
            case "content_block_stop":
                index = facts["index"]
                return [] if index in self._skipped else [PartEnded(index=self._open.pop(index))]
            case "message_start":
                message = facts["message"]
                self._usage = anthropic_usage(message.get("usage"), self._usage)
                return [AnswerStarted(id=message["id"], model=message["model"], usage=self._usage)]
            case "message_delta":
                delta = facts["delta"]
                self._stop = STOPS.get(delta.get("stop_reason") or "", self._stop)
                self._sequence = delta.get("stop_sequence", self._sequence)
                self._usage = anthropic_usage(facts.get("usage"), self._usage)
                return []
            case "message_stop":
                return [AnswerEnded(stop=self._stop, sequence=self._sequence, usage=self._usage)]
            case "error":
                return [AnswerFailed(error=errors.read(facts))]
            case "ping":
                return [KeepAlive()]
            case _:
                return []

    def _part(self, theirs: int, block: Json) -> list[Event]:
        if block["type"] not in _KNOWN:
            self._skipped.add(theirs)
            return []
        self._open[theirs] = index = self._started
        self._started += 1
        match block["type"]:
            case "text":
                started: list[Event] = [PartStarted(index=index, kind=PartKind.TEXT)]
                return [*started, PartGrew(index, block["text"])] if block.get("text") else started
            case "thinking":
                return [PartStarted(index=index, kind=PartKind.THINKING)]
            case "redacted_thinking":
                signature = signatures.of_redacted(block["data"])
                return [PartStarted(index=index, kind=PartKind.THINKING), PartSigned(index=index, signature=signature)]
            case _:
                return [PartStarted(index=index, kind=PartKind.CALL, id=block["id"], name=block["name"])]

    def _grown(self, theirs: int, delta: Json) -> list[Event]:
        if theirs in self._skipped:
            return []
        index, kind = self._open[theirs], delta["type"]
        if kind in _GROWTH:
            text = delta[_GROWTH[kind]]
            return [PartGrew(index, text)] if text else []
        return [PartSigned(index=index, signature=delta["signature"])] if kind == "signature_delta" else []


class AnthropicWriter:
    def __init__(self, info: RequestInfo) -> None:
        self._info = info
        self._kinds: dict[int, PartKind] = {}

    def write(self, event: Event) -> bytes:
        match event:
            case PartGrew():
                return self._growth(event)
            case PartStarted():
                self._kinds[event.index] = event.kind
                return _event("content_block_start", index=event.index, content_block=_opening(event))
            case PartEnded():
                return _event("content_block_stop", index=event.index)
            case PartSigned():
                return self._signature(event)
            case AnswerStarted():
                return _event("message_start", message=_message(event))
            case AnswerEnded():
                ending = {"stop_reason": STOP_NAMES[event.stop], "stop_sequence": event.sequence}
                usage = usage_facts(event.usage)
                return _event("message_delta", delta=ending, usage=usage) + _event("message_stop")
            case KeepAlive():
                return _event("ping")
            case AnswerFailed():
                return sse_event(dumps(errors.anthropic(event.error)), "error")

    def _growth(self, event: PartGrew) -> bytes:
        match self._kinds[event.index]:
            case PartKind.TEXT:
                delta = {"type": "text_delta", "text": event.text}
            case PartKind.THINKING:
                delta = {"type": "thinking_delta", "thinking": event.text}
            case PartKind.CALL:
                delta = {"type": "input_json_delta", "partial_json": event.text}
        return _event("content_block_delta", index=event.index, delta=delta)

    def _signature(self, event: PartSigned) -> bytes:
        delta = {"type": "signature_delta", "signature": event.signature}
        return _event("content_block_delta", index=event.index, delta=delta)


def _opening(event: PartStarted) -> Json:
    match event.kind:
        case PartKind.TEXT:
            return {"type": "text", "text": ""}
        case PartKind.THINKING:
            return {"type": "thinking", "thinking": "", "signature": ""}
        case PartKind.CALL:
            return {"type": "tool_use", "id": event.id, "name": event.name, "input": {}}


def _message(event: AnswerStarted) -> Json:
    usage = event.usage
    return {
        "id": event.id,
        "type": "message",
        "role": "assistant",
        "model": event.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_facts(
            TokenCounts(input=usage.input, cache_read=usage.cache_read, cache_write=usage.cache_write)
        ),
    }


def _event(kind: str, **facts: object) -> bytes:
    return sse_event(dumps({"type": kind, **facts}), kind)
