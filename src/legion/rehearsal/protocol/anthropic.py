"""Writes answers of Anthropic's Messages API: as one message, as a stream of events, or as an error."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from legion.rehearsal.script.script import ScriptedLimit, ScriptedUsage, Step, Window

Json = dict[str, Any]

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_CLAIMS = {Window.FIVE_HOURS: "five_hour", Window.SEVEN_DAYS: "seven_day"}
_UNIFIED = "anthropic-ratelimit-unified"
_BYTES_PER_TOKEN = 4
_NEARLY_USED_UP = 0.8


def message(step: Step, *, model: str, size: int) -> Json:
    """The complete answer to a request of `size` bytes."""
    blocks = _blocks(step)
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": step.stop or ("tool_use" if step.calls else "end_turn"),
        "stop_sequence": None,
        "usage": _usage(step.usage, size, len(json.dumps(blocks))),
    }


def events(answer: Json) -> Iterator[bytes]:
    """The same answer as a stream."""
    usage = answer["usage"]
    started = {**answer, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _event({"type": "message_start", "message": started})
    yield _event({"type": "ping"})
    for index, block in enumerate(answer["content"]):
        yield _event({"type": "content_block_start", "index": index, "content_block": _opening(block)})
        for delta in _deltas(block):
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": ending, "usage": {"output_tokens": usage["output_tokens"]}})
    yield _event({"type": "message_stop"})


def error(status: int, sentence: str) -> Json:
    kind = _KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": sentence}, "request_id": f"req_{uuid.uuid4().hex}"}


def tokens(size: int) -> int:
    return max(1, size // _BYTES_PER_TOKEN)


def limit_headers(limit: ScriptedLimit, *, refused: bool, now: float) -> dict[str, str]:
    """The headers in which the API reports an account's limit, for refused and for other answers."""
    nearly = "allowed_warning" if limit.utilization >= _NEARLY_USED_UP else "allowed"
    status = "rejected" if refused else nearly
    reset = str(int(now + limit.resets_in))
    window = limit.window.value
    headers = {
        f"{_UNIFIED}-status": status,
        f"{_UNIFIED}-reset": reset,
        f"{_UNIFIED}-representative-claim": _CLAIMS[limit.window],
        f"{_UNIFIED}-{window}-status": status,
        f"{_UNIFIED}-{window}-reset": reset,
        f"{_UNIFIED}-{window}-utilization": str(limit.utilization),
    }
    return headers | ({"retry-after": str(max(1, round(limit.resets_in)))} if refused else {})


def _blocks(step: Step) -> list[Json]:
    blocks: list[Json] = []
    if step.think:
        signature = base64.b64encode(hashlib.sha256(step.think.encode()).digest()).decode()
        blocks.append({"type": "thinking", "thinking": step.think, "signature": signature})
    if step.say:
        blocks.append({"type": "text", "text": step.say})
    for call in step.calls:
        name = f"toolu_{uuid.uuid4().hex[:24]}"
        blocks.append({"type": "tool_use", "id": name, "name": call.tool, "input": dict(call.input)})
    return blocks


def _usage(usage: ScriptedUsage, asked: int, answered: int) -> dict[str, int]:
    return {
        "input_tokens": tokens(asked) if usage.input is None else usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": tokens(answered) if usage.output is None else usage.output,
    }


def _opening(block: Mapping[str, Any]) -> Json:
    match block["type"]:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}
        case _:
            return {**block, "input": {}}


def _deltas(block: Mapping[str, Any]) -> Iterator[Json]:
    match block["type"]:
        case "thinking":
            for piece in pieces(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            for piece in pieces(block["text"]):
                yield {"type": "text_delta", "text": piece}
        case _:
            yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


def pieces(text: str) -> list[str]:
    """A few words each, so that a stream has places to break."""
    return re.findall(r"(?:\S+\s*){1,4}|\s+", text)


def _event(facts: Json) -> bytes:
    return f"event: {facts['type']}\ndata: {json.dumps(facts)}\n\n".encode()
