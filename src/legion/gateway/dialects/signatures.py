"""Signatures of thinking: proofs that a thinking block is the provider's own, in a form that other dialects can carry.

A signature without a prefix of ours is Anthropic's. The others name their dialect, so that they return only there.
"""

from __future__ import annotations

import base64
import binascii

import orjson

from legion.gateway.json_text import Json

_RESPONSES = "legion-responses:"
_ANTHROPIC = "legion-anthropic:"
_REDACTED = "legion-redacted:"
CHAT = "legion-chat:"
"""Marks thinking that came without a signature, from Chat Completions, and may return only there."""
_FOREIGN = (_RESPONSES, _ANTHROPIC, CHAT)
_PLACEHOLDER = {"type": "text", "text": "(thinking)"}


def of_responses(id: str, content: str) -> str:
    return f"{_RESPONSES}{id}:{content}"


def to_responses(signature: str) -> tuple[str, str] | None:
    """Id and encrypted content, if the signature is from the Responses API."""
    if not signature.startswith(_RESPONSES):
        return None
    id, _, content = signature.removeprefix(_RESPONSES).partition(":")
    return id, content


def of_redacted(data: str) -> str:
    return f"{_REDACTED}{data}"


def to_redacted(signature: str) -> str | None:
    return signature.removeprefix(_REDACTED) if signature.startswith(_REDACTED) else None


def is_anthropic(signature: str) -> bool:
    """Whether Anthropic accepts it."""
    return bool(signature) and not signature.startswith(_FOREIGN)


def packed(text: str, signature: str) -> str:
    """Thinking of Anthropic's with its signature, for a caller that returns only the encrypted content."""
    return _ANTHROPIC + base64.b64encode(orjson.dumps([text, signature])).decode()


def unpacked(content: str) -> tuple[str, str] | None:
    """Text and signature, if `packed` made it."""
    if not content.startswith(_ANTHROPIC):
        return None
    try:
        text, signature = orjson.loads(base64.b64decode(content.removeprefix(_ANTHROPIC), validate=True))
    except (binascii.Error, ValueError):
        return None
    return str(text), str(signature)


def has_foreign(facts: Json) -> bool:
    """Whether a request in Anthropic's dialect holds thinking that Anthropic would refuse."""
    messages = facts.get("messages")
    if not isinstance(messages, list):
        return False
    for message in messages:
        if isinstance(message, dict) and message.get("role") == "assistant":
            for block in _blocks(message):
                if _is_foreign(block):
                    return True
    return False


def without_foreign(facts: Json) -> Json:
    """The request without that thinking."""
    return {**facts, "messages": [_without(one) for one in facts["messages"]]}


def _blocks(message: object) -> list[object]:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def _without(message: object) -> object:
    blocks = _blocks(message)
    kept = [block for block in blocks if not _is_foreign(block)]
    if len(kept) == len(blocks) or not isinstance(message, dict):
        return message
    return {**message, "content": kept or [_PLACEHOLDER]}


def _is_foreign(block: object) -> bool:
    if not isinstance(block, dict) or block.get("type") != "thinking":
        return False
    signature = block.get("signature")
    return isinstance(signature, str) and signature.startswith(_FOREIGN)
