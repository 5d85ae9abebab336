"""Reads and writes complete answers of OpenAI's Responses API."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from legion.gateway.counting.counters import TokenCounts
from legion.gateway.counting.openai import responses_usage
from legion.gateway.dialects import errors, signatures
from legion.gateway.dialects.common import free_text, wrap_text
from legion.gateway.dialects.messages import (
    AnswerPart,
    ModelAnswer,
    ModelFailed,
    RequestInfo,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from legion.gateway.json_text import Json

_REASONS = {"max_output_tokens": StopReason.LENGTH, "content_filter": StopReason.REFUSAL}
_INCOMPLETE = {stop: name for name, stop in _REASONS.items()}


def stop_of(facts: Json, has_calls: bool) -> StopReason:
    if facts.get("status") == "incomplete":
        return _REASONS.get((facts.get("incomplete_details") or {}).get("reason") or "", StopReason.LENGTH)
    return StopReason.CALLS if has_calls else StopReason.END


def signature_of(item: Json) -> str:
    """Empty for thinking without encrypted content, which the provider does not accept back."""
    content = item.get("encrypted_content")
    return signatures.of_responses(item.get("id") or "", content) if content else ""


def read(facts: Json, info: RequestInfo) -> ModelAnswer:
    if facts.get("status") in ("failed", "cancelled"):
        raise ModelFailed(errors.read({"error": facts.get("error")}))
    parts = tuple(part for item in facts["output"] for part in _parts(item, info))
    return ModelAnswer(
        id=facts["id"],
        model=facts.get("model") or info.model,
        parts=parts,
        stop=stop_of(facts, any(isinstance(part, ToolCallPart) for part in parts)),
        usage=responses_usage(facts.get("usage")),
    )


def _parts(item: Json, info: RequestInfo) -> Iterator[AnswerPart]:
    match item["type"]:
        case "message":
            for one in item["content"]:
                text = one.get("text") or one.get("refusal")
                if text:
                    yield TextPart(text=text)
        case "reasoning":
            texts = [*(item.get("summary") or ()), *(item.get("content") or ())]
            yield ThinkingPart(text="\n\n".join(one["text"] for one in texts), signature=signature_of(item))
        case "function_call":
            name: str = item["name"]
            yield ToolCallPart(id=item["call_id"], name=info.names.get(name, name), input=item.get("arguments") or "{}")
        case "custom_tool_call":
            yield ToolCallPart(id=item["call_id"], name=item["name"], input=wrap_text(item["input"]))


def write(answer: ModelAnswer, info: RequestInfo) -> Json:
    reason = _INCOMPLETE.get(answer.stop)
    return {
        **head(answer.id, answer.model, info),
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": [written(part, info) for part in answer.parts],
        "usage": usage_facts(answer.usage),
    }


def head(id: str, model: str, info: RequestInfo) -> Json:
    return {
        "id": id,
        "object": "response",
        "created_at": info.at,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "store": False,
        "usage": None,
    }


def written(part: AnswerPart, info: RequestInfo, id: str = "") -> Json:
    """A complete item."""
    match part:
        case TextPart():
            content = {"type": "output_text", "text": part.text, "annotations": []}
            return {
                "type": "message",
                "id": id or new_id("msg"),
                "role": "assistant",
                "status": "completed",
                "content": [content],
            }
        case ThinkingPart():
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
            return {
                "type": "reasoning",
                "id": id or new_id("rs"),
                "summary": summary,
                "encrypted_content": _carried(part),
            }
        case ToolCallPart() if part.name in info.free:
            facts = {"type": "custom_tool_call", "id": id or new_id("ctc"), "call_id": part.id, "name": part.name}
            return {**facts, "input": free_text(part), "status": "completed"}
        case ToolCallPart():
            facts = {"type": "function_call", "id": id or new_id("fc"), "call_id": part.id, "name": part.name}
            return {**facts, "arguments": part.input or "{}", "status": "completed"}


def _carried(part: ThinkingPart) -> str | None:
    """The encrypted content, which the caller sends back unread."""
    known = signatures.to_responses(part.signature)
    if known is not None:
        return known[1]
    return signatures.packed(part.text, part.signature) if signatures.is_anthropic(part.signature) else None


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


def usage_facts(usage: TokenCounts) -> Json:
    read = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + usage.output,
    }
