"""Reads and writes complete answers of OpenAI's Chat Completions API."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from legion.gateway.counting.counters import TokenCounts
from legion.gateway.counting.openai import chat_usage
from legion.gateway.dialects import signatures
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
    "stop": StopReason.END,
    "tool_calls": StopReason.CALLS,
    "function_call": StopReason.CALLS,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}
STOP_NAMES = {
    StopReason.END: "stop",
    StopReason.CALLS: "tool_calls",
    StopReason.LENGTH: "length",
    StopReason.SEQUENCE: "stop",
    StopReason.REFUSAL: "content_filter",
    StopReason.PAUSE: "stop",
}


def new_call_id() -> str:
    """For providers that send no id."""
    return f"call_{uuid.uuid4().hex[:24]}"


def stop_of(name: object, has_calls: bool) -> StopReason:
    """Some providers end with `stop` although they called tools."""
    stop = STOPS.get(name, StopReason.END) if isinstance(name, str) else StopReason.END
    return StopReason.CALLS if has_calls and stop is StopReason.END else stop


def read(facts: Json, info: RequestInfo) -> ModelAnswer:
    choice = facts["choices"][0]
    parts = tuple(_parts(choice["message"], info))
    return ModelAnswer(
        id=facts.get("id") or f"chatcmpl-{uuid.uuid4().hex}",
        model=facts.get("model") or info.model,
        parts=parts,
        stop=stop_of(choice.get("finish_reason"), any(isinstance(part, ToolCallPart) for part in parts)),
        usage=chat_usage(facts.get("usage")),
    )


def _parts(message: Json, info: RequestInfo) -> Iterator[AnswerPart]:
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str) and thought:
        yield ThinkingPart(text=thought, signature=signatures.CHAT)
    text = message.get("content") or message.get("refusal")
    if isinstance(text, str) and text:
        yield TextPart(text=text)
    for call in message.get("tool_calls") or ():
        inside = call["function"]
        name = info.names.get(inside["name"], inside["name"])
        yield ToolCallPart(id=call.get("id") or new_call_id(), name=name, input=inside.get("arguments") or "{}")


def write(answer: ModelAnswer, info: RequestInfo) -> Json:
    text = "".join(part.text for part in answer.parts if isinstance(part, TextPart))
    thought = "".join(part.text for part in answer.parts if isinstance(part, ThinkingPart))
    calls = [
        {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.input}}
        for part in answer.parts
        if isinstance(part, ToolCallPart)
    ]
    message: Json = {"role": "assistant", "content": text or None, "refusal": None}
    message |= {"reasoning_content": thought} if thought else {}
    message |= {"tool_calls": calls} if calls else {}
    return {
        "id": answer.id,
        "object": "chat.completion",
        "created": info.at,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": STOP_NAMES[answer.stop]}],
        "usage": usage_facts(answer.usage),
    }


def usage_facts(usage: TokenCounts) -> Json:
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
    }
