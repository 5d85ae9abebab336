"""OpenAI's Chat Completions and Responses APIs, converted from and to Anthropic's.

Shares no code with the gateway, which is tested against it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

from legion.rehearsal.protocol.anthropic import Json, pieces

_FINISHES = {"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
_REASONS = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}
_KINDS = {401: "authentication_error", 429: "rate_limit_error"}
_OVERLOADED = 529


def chat_facts(facts: Json) -> Json:
    """A request of Chat Completions in Anthropic's form."""
    messages: list[Json] = []
    system: list[str] = []
    for entry in facts["messages"]:
        match entry["role"]:
            case "system" | "developer" if not messages:
                system += _texts(entry["content"])
            case "tool":
                result = {"type": "tool_result", "tool_use_id": entry["tool_call_id"]}
                messages.append(_message("user", {**result, "content": _blocks(entry["content"])}))
            case "assistant":
                calls = [_use(call["function"]["name"]) for call in entry.get("tool_calls") or ()]
                messages.append(_message("assistant", *_blocks(entry.get("content") or ""), *calls))
            case _:
                messages.append(_message("user", *_blocks(entry["content"])))
    return _facts(facts, "\n".join(system), messages)


def responses_facts(facts: Json) -> Json:
    """A request of the Responses API in Anthropic's form."""
    messages: list[Json] = []
    given = facts["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        match item.get("type", "message"):
            case "message":
                role = "assistant" if item["role"] == "assistant" else "user"
                messages.append(_message(role, *_blocks(item["content"])))
            case "function_call" | "custom_tool_call":
                messages.append(_message("assistant", _use(item["name"])))
            case "function_call_output" | "custom_tool_call_output":
                result = {"type": "tool_result", "tool_use_id": item["call_id"]}
                messages.append(_message("user", {**result, "content": _blocks(item["output"])}))
    return _facts(facts, facts.get("instructions") or "", messages)


def chat_message(message: Json) -> Json:
    text = "".join(block["text"] for block in message["content"] if block["type"] == "text")
    thought = "".join(block["thinking"] for block in message["content"] if block["type"] == "thinking")
    calls = [_chat_call(block) for block in message["content"] if block["type"] == "tool_use"]
    answer: Json = {"role": "assistant", "content": text or None}
    answer |= {"reasoning_content": thought} if thought else {}
    answer |= {"tool_calls": calls} if calls else {}
    finish = _FINISHES.get(message["stop_reason"], "stop")
    choice = {"index": 0, "message": answer, "finish_reason": finish}
    return {**_chat_head(message, "chat.completion"), "choices": [choice], "usage": _chat_usage(message["usage"])}


def chat_events(message: Json) -> Iterator[bytes]:
    head = _chat_head(message, "chat.completion.chunk")

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        return _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    number = 0
    for block in message["content"]:
        match block["type"]:
            case "thinking":
                yield from (chunk({"reasoning_content": piece}) for piece in pieces(block["thinking"]))
            case "text":
                yield from (chunk({"content": piece}) for piece in pieces(block["text"]))
            case _:
                call = _chat_call(block)
                arguments = call["function"].pop("arguments")
                call["function"]["arguments"] = ""
                yield chunk({"tool_calls": [{"index": number, **call}]})
                for at in range(0, len(arguments), 20):
                    piece = {"arguments": arguments[at : at + 20]}
                    yield chunk({"tool_calls": [{"index": number, "function": piece}]})
                number += 1
    yield chunk({}, _FINISHES.get(message["stop_reason"], "stop"))
    yield _data({**head, "choices": [], "usage": _chat_usage(message["usage"])})
    yield b"data: [DONE]\n\n"


def response(message: Json) -> Json:
    usage, reason = message["usage"], _REASONS.get(message["stop_reason"])
    read = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    return {
        **_response_head(message),
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": [_item(block, number) for number, block in enumerate(message["content"])],
        "usage": {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": usage["cache_read_input_tokens"]},
            "output_tokens": usage["output_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + usage["output_tokens"],
        },
    }


def response_events(message: Json) -> Iterator[bytes]:
    complete = response(message)
    started = {**_response_head(message), "status": "in_progress", "output": [], "usage": None}
    yield _event("response.created", response=started)
    for number, (block, item) in enumerate(zip(message["content"], complete["output"], strict=True)):
        yield from _item_events(number, block, item)
    yield _event(f"response.{complete['status']}", response=complete)


def error(status: int, sentence: str) -> tuple[int, Json]:
    """Status and body. Anthropic's overloaded is OpenAI's unavailable."""
    kind = _KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return 503 if status == _OVERLOADED else status, {
        "error": {"message": sentence, "type": kind, "param": None, "code": None}
    }


def _item_events(number: int, block: Json, item: Json) -> Iterator[bytes]:
    place = {"output_index": number, "item_id": item["id"]}
    match block["type"]:
        case "thinking":
            opening = {**item, "summary": [], "encrypted_content": None}
            yield _event("response.output_item.added", output_index=number, item=opening)
            for piece in pieces(block["thinking"]):
                yield _event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=piece)
        case "text":
            yield _event("response.output_item.added", output_index=number, item={**item, "content": []})
            part = {"type": "output_text", "text": "", "annotations": []}
            yield _event("response.content_part.added", **place, content_index=0, part=part)
            for piece in pieces(block["text"]):
                yield _event("response.output_text.delta", **place, content_index=0, delta=piece)
            yield _event("response.content_part.done", **place, content_index=0, part=item["content"][0])
        case _:
            yield _event("response.output_item.added", output_index=number, item={**item, "arguments": ""})
            for at in range(0, len(item["arguments"]), 20):
                delta = item["arguments"][at : at + 20]
                yield _event("response.function_call_arguments.delta", **place, delta=delta)
    yield _event("response.output_item.done", output_index=number, item=item)


def _item(block: Json, number: int) -> Json:
    match block["type"]:
        case "thinking":
            summary = [{"type": "summary_text", "text": block["thinking"]}]
            id = f"rs_{number}_{uuid.uuid4().hex}"
            return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": block["signature"]}
        case "text":
            content = [{"type": "output_text", "text": block["text"], "annotations": []}]
            message = {"type": "message", "role": "assistant", "status": "completed", "content": content}
            return {"id": f"msg_{number}_{uuid.uuid4().hex}", **message}
        case _:
            call = {"type": "function_call", "id": f"fc_{number}_{uuid.uuid4().hex}", "status": "completed"}
            return {**call, "call_id": block["id"], "name": block["name"], "arguments": json.dumps(block["input"])}


def _facts(facts: Json, system: str, messages: list[Json]) -> Json:
    return {
        "model": facts["model"],
        "system": system,
        "messages": messages,
        "tools": facts.get("tools"),
        "stream": facts.get("stream"),
    }


def _message(role: str, *blocks: Json) -> Json:
    return {"role": role, "content": list(blocks)}


def _use(name: str) -> Json:
    return {"type": "tool_use", "id": "", "name": name, "input": {}}


def _blocks(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": text} for text in _texts(content) if text]


def _texts(content: str | list[Json]) -> list[str]:
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]


def _chat_head(message: Json, kind: str) -> Json:
    return {"id": f"chatcmpl-{message['id']}", "object": kind, "created": 1, "model": message["model"]}


def _chat_call(block: Json) -> Json:
    inside = {"name": block["name"], "arguments": json.dumps(block["input"])}
    return {"id": block["id"].replace("toolu", "call"), "type": "function", "function": inside}


def _chat_usage(usage: Json) -> Json:
    read = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    return {
        "prompt_tokens": read,
        "completion_tokens": usage["output_tokens"],
        "total_tokens": read + usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": usage["cache_read_input_tokens"]},
    }


def _response_head(message: Json) -> Json:
    return {"id": f"resp_{message['id']}", "object": "response", "created_at": 1, "model": message["model"]}


def _data(facts: Json) -> bytes:
    return f"data: {json.dumps(facts)}\n\n".encode()


def _event(kind: str, **facts: object) -> bytes:
    return f"event: {kind}\n".encode() + _data({"type": kind, **facts})
