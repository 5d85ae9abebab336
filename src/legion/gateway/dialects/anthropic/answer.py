"""Reads and writes complete answers of Anthropic's Messages API."""

from __future__ import annotations

import orjson

from legion.gateway.counting.counters import NO_TOKENS, TokenCounts, anthropic_usage
from legion.gateway.dialects import signatures
from legion.gateway.dialects.common import input_of
from legion.gateway.dialects.messages import (
    AnswerPart,
    ModelAnswer,
    RequestInfo,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from legion.gateway.json_text import Json

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
