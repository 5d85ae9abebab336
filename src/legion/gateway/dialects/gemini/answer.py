"""Writes complete answers of the Gemini API, and the parts that a streamed one consists of."""

from __future__ import annotations

from legion.gateway.counting.counters import TokenCounts
from legion.gateway.dialects import signatures
from legion.gateway.dialects.common import input_of
from legion.gateway.dialects.messages import ModelAnswer, RequestInfo, StopReason, TextPart, ThinkingPart, ToolCallPart
from legion.gateway.json_text import Json

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
