"""What tools take: a JSON object, also where the caller's tool takes one free text."""

from __future__ import annotations

import orjson

from legion.gateway.dialects.messages import ToolCallPart, ToolDefinition
from legion.gateway.json_text import Json

_FREE: Json = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def schema_of(tool: ToolDefinition) -> Json:
    return _FREE if tool.schema is None else tool.schema


def input_of(call: ToolCallPart) -> Json:
    """What a model wrote may be no JSON, or none of an object; Anthropic takes only objects."""
    try:
        found = orjson.loads(call.input) if call.input.strip() else {}
    except orjson.JSONDecodeError:
        return {"input": call.input}
    return found if isinstance(found, dict) else {"input": found}


def wrapped(text: str) -> str:
    """The free text as the input of a call."""
    return orjson.dumps({"input": text}).decode()


def free_text(call: ToolCallPart) -> str:
    """The other way round."""
    found = input_of(call).get("input", "")
    return found if isinstance(found, str) else orjson.dumps(found).decode()
