"""Token estimates and model lists, mostly in Anthropic's form, for providers that have no such endpoints."""

from __future__ import annotations

from collections.abc import Iterable

from legion.gateway.dialects.messages import (
    DocumentPart,
    ImagePart,
    ModelRequest,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from legion.gateway.json_text import Json, UnreadableMessage, dumps, loads

_CHARACTERS_PER_TOKEN = 3.6
_IMAGE = 1500
_DOCUMENT = 6000
_PER_MESSAGE = 4


def count_tokens(request: ModelRequest) -> Json:
    """An estimate, marked as such."""
    return {"input_tokens": _estimate(request), "estimated": True}


def count_content(request: ModelRequest) -> Json:
    """The same in the form of the Gemini API, which has no place for the mark."""
    return {"totalTokens": _estimate(request)}


def _estimate(request: ModelRequest) -> int:
    characters = sum(len(one.text) for one in request.system)
    characters += sum(len(dumps(tool.schema)) + len(tool.name) + len(tool.description) for tool in request.tools)
    tokens = characters / _CHARACTERS_PER_TOKEN + _PER_MESSAGE * len(request.messages)
    tokens += sum(_tokens(message.parts) for message in request.messages)
    return max(1, round(tokens))


def _tokens(parts: Iterable[Part]) -> float:
    total = 0.0
    for part in parts:
        match part:
            case TextPart() | ThinkingPart():
                total += len(part.text) / _CHARACTERS_PER_TOKEN
            case ToolCallPart():
                total += (len(part.name) + len(part.input)) / _CHARACTERS_PER_TOKEN
            case ImagePart():
                total += _IMAGE
            case DocumentPart():
                total += _DOCUMENT
            case ToolResultPart():
                total += _tokens(part.content)
    return total


def models_list(body: bytes) -> Json:
    """The provider's list with the fields of both Anthropic and OpenAI."""
    try:
        found = loads(body).get("data")
    except UnreadableMessage:
        found = None
    names = [str(one["id"]) for one in found or () if isinstance(one, dict) and "id" in one]
    data = [
        {
            "id": name,
            "object": "model",
            "type": "model",
            "display_name": name,
            "created": 0,
            "created_at": "1970-01-01T00:00:00Z",
            "owned_by": "provider",
        }
        for name in names
    ]
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return {"object": "list", "data": data, "has_more": False, **ends}
