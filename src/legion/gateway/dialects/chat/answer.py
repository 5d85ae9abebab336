"""Whole answers in the words of OpenAI's Chat Completions API, read and written."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from legion.gateway.counting import Usage
from legion.gateway.dialects import seals
from legion.gateway.dialects.inner import Answer, Asked, Call, Json, Said, Stop, Text, Thinking
from legion.gateway.openai_counting import chat_usage

STOPS = {
    "stop": Stop.END,
    "tool_calls": Stop.CALLS,
    "function_call": Stop.CALLS,
    "length": Stop.LENGTH,
    "content_filter": Stop.REFUSAL,
}
STOP_WORDS = {
    Stop.END: "stop",
    Stop.CALLS: "tool_calls",
    Stop.LENGTH: "length",
    Stop.SEQUENCE: "stop",
    Stop.REFUSAL: "content_filter",
    Stop.PAUSE: "stop",
}


def new_call_id() -> str:
    """For providers that give none."""
    return f"call_{uuid.uuid4().hex[:24]}"


def stop_of(word: object, has_calls: bool) -> Stop:
    """Some providers end with `stop` although they called tools."""
    stop = STOPS.get(word, Stop.END) if isinstance(word, str) else Stop.END
    return Stop.CALLS if has_calls and stop is Stop.END else stop


def read(facts: Json, asked: Asked) -> Answer:
    choice = facts["choices"][0]
    parts = tuple(_parts(choice["message"], asked))
    return Answer(
        id=facts.get("id") or f"chatcmpl-{uuid.uuid4().hex}",
        model=facts.get("model") or asked.model,
        parts=parts,
        stop=stop_of(choice.get("finish_reason"), any(isinstance(part, Call) for part in parts)),
        usage=chat_usage(facts.get("usage")),
    )


def _parts(message: Json, asked: Asked) -> Iterator[Said]:
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str) and thought:
        yield Thinking(text=thought, seal=seals.CHAT)
    text = message.get("content") or message.get("refusal")
    if isinstance(text, str) and text:
        yield Text(text=text)
    for call in message.get("tool_calls") or ():
        inside = call["function"]
        name = asked.names.get(inside["name"], inside["name"])
        yield Call(id=call.get("id") or new_call_id(), name=name, input=inside.get("arguments") or "{}")


def write(answer: Answer, asked: Asked) -> Json:
    text = "".join(part.text for part in answer.parts if isinstance(part, Text))
    thought = "".join(part.text for part in answer.parts if isinstance(part, Thinking))
    calls = [
        {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.input}}
        for part in answer.parts
        if isinstance(part, Call)
    ]
    message: Json = {"role": "assistant", "content": text or None, "refusal": None}
    message |= {"reasoning_content": thought} if thought else {}
    message |= {"tool_calls": calls} if calls else {}
    return {
        "id": answer.id,
        "object": "chat.completion",
        "created": asked.at,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": STOP_WORDS[answer.stop]}],
        "usage": usage_words(answer.usage),
    }


def usage_words(usage: Usage) -> Json:
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
    }
