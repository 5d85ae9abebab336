"""Whole answers in the words of Anthropic's Messages API, read and written."""

from __future__ import annotations

import orjson

from legion.gateway.counting import NOTHING, Usage, anthropic_usage
from legion.gateway.dialects import seals
from legion.gateway.dialects.inner import Answer, Asked, Call, Json, Said, Stop, Text, Thinking
from legion.gateway.dialects.tools import input_of

STOPS = {
    "end_turn": Stop.END,
    "tool_use": Stop.CALLS,
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "stop_sequence": Stop.SEQUENCE,
    "refusal": Stop.REFUSAL,
    "pause_turn": Stop.PAUSE,
}
STOP_WORDS = {
    Stop.END: "end_turn",
    Stop.CALLS: "tool_use",
    Stop.LENGTH: "max_tokens",
    Stop.SEQUENCE: "stop_sequence",
    Stop.REFUSAL: "refusal",
    Stop.PAUSE: "pause_turn",
}


def read(facts: Json, asked: Asked) -> Answer:
    parts = (_part(block) for block in facts["content"])
    return Answer(
        id=facts["id"],
        model=facts["model"],
        parts=tuple(part for part in parts if part is not None),
        stop=STOPS.get(facts.get("stop_reason") or "", Stop.END),
        sequence=facts.get("stop_sequence"),
        usage=anthropic_usage(facts.get("usage"), NOTHING),
    )


def _part(block: Json) -> Said | None:
    match block["type"]:
        case "text":
            return Text(text=block["text"])
        case "thinking":
            return Thinking(text=block["thinking"], seal=block.get("signature") or "")
        case "redacted_thinking":
            return Thinking(seal=seals.of_redacted(block["data"]))
        case "tool_use":
            return Call(id=block["id"], name=block["name"], input=orjson.dumps(block["input"]).decode())
        case _:
            return None


def write(answer: Answer, asked: Asked) -> Json:
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [_block(part) for part in answer.parts],
        "stop_reason": STOP_WORDS[answer.stop],
        "stop_sequence": answer.sequence,
        "usage": usage_words(answer.usage),
    }


def _block(part: Said) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Thinking():
            data = seals.to_redacted(part.seal)
            if data is not None:
                return {"type": "redacted_thinking", "data": data}
            return {"type": "thinking", "thinking": part.text, "signature": part.seal}
        case Call():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": input_of(part)}


def usage_words(usage: Usage) -> Json:
    """Whole: some programs refuse a thinner one."""
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
