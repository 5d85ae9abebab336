"""Whole answers in the words of OpenAI's Responses API, read and written."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from legion.gateway.counting import Usage
from legion.gateway.dialects import faults, seals
from legion.gateway.dialects.inner import Answer, Asked, Call, Json, ModelFailed, Said, Stop, Text, Thinking
from legion.gateway.dialects.tools import free_text, wrapped
from legion.gateway.openai_counting import responses_usage

_REASONS = {"max_output_tokens": Stop.LENGTH, "content_filter": Stop.REFUSAL}
_INCOMPLETE = {stop: word for word, stop in _REASONS.items()}


def stop_of(facts: Json, has_calls: bool) -> Stop:
    if facts.get("status") == "incomplete":
        return _REASONS.get((facts.get("incomplete_details") or {}).get("reason") or "", Stop.LENGTH)
    return Stop.CALLS if has_calls else Stop.END


def seal_of(item: Json) -> str:
    """Empty for a thought that cannot be brought back."""
    content = item.get("encrypted_content")
    return seals.of_responses(item.get("id") or "", content) if content else ""


def read(facts: Json, asked: Asked) -> Answer:
    if facts.get("status") in ("failed", "cancelled"):
        raise ModelFailed(faults.read({"error": facts.get("error")}))
    parts = tuple(part for item in facts["output"] for part in _parts(item, asked))
    return Answer(
        id=facts["id"],
        model=facts.get("model") or asked.model,
        parts=parts,
        stop=stop_of(facts, any(isinstance(part, Call) for part in parts)),
        usage=responses_usage(facts.get("usage")),
    )


def _parts(item: Json, asked: Asked) -> Iterator[Said]:
    match item["type"]:
        case "message":
            for one in item["content"]:
                text = one.get("text") or one.get("refusal")
                if text:
                    yield Text(text=text)
        case "reasoning":
            said = [*(item.get("summary") or ()), *(item.get("content") or ())]
            yield Thinking(text="\n\n".join(one["text"] for one in said), seal=seal_of(item))
        case "function_call":
            name: str = item["name"]
            yield Call(id=item["call_id"], name=asked.names.get(name, name), input=item.get("arguments") or "{}")
        case "custom_tool_call":
            yield Call(id=item["call_id"], name=item["name"], input=wrapped(item["input"]))


def write(answer: Answer, asked: Asked) -> Json:
    reason = _INCOMPLETE.get(answer.stop)
    return {
        **head(answer.id, answer.model, asked),
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": [written(part, asked) for part in answer.parts],
        "usage": usage_words(answer.usage),
    }


def head(id: str, model: str, asked: Asked) -> Json:
    return {
        "id": id,
        "object": "response",
        "created_at": asked.at,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "store": False,
        "usage": None,
    }


def written(part: Said, asked: Asked, id: str = "") -> Json:
    """A finished item."""
    match part:
        case Text():
            content = {"type": "output_text", "text": part.text, "annotations": []}
            return {
                "type": "message",
                "id": id or new_id("msg"),
                "role": "assistant",
                "status": "completed",
                "content": [content],
            }
        case Thinking():
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
            return {
                "type": "reasoning",
                "id": id or new_id("rs"),
                "summary": summary,
                "encrypted_content": _carried(part),
            }
        case Call() if part.name in asked.free:
            facts = {"type": "custom_tool_call", "id": id or new_id("ctc"), "call_id": part.id, "name": part.name}
            return {**facts, "input": free_text(part), "status": "completed"}
        case Call():
            facts = {"type": "function_call", "id": id or new_id("fc"), "call_id": part.id, "name": part.name}
            return {**facts, "arguments": part.input or "{}", "status": "completed"}


def _carried(part: Thinking) -> str | None:
    """What the caller brings back to us unread."""
    known = seals.to_responses(part.seal)
    if known is not None:
        return known[1]
    return seals.packed(part.text, part.seal) if seals.is_anthropic(part.seal) else None


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


def usage_words(usage: Usage) -> Json:
    read = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + usage.output,
    }
