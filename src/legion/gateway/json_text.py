"""JSON as the gateway reads and writes it. Models may say halves of letters, which orjson refuses to write."""

from __future__ import annotations

import json
from typing import Any

import orjson

Json = dict[str, Any]


class UnreadableMessage(Exception):
    """The bytes are not what the dialect prescribes; the sentence says what was found."""


def dumps(facts: object) -> bytes:
    try:
        return orjson.dumps(facts)
    except TypeError:
        # A lone surrogate, or a number beyond 64 bits.
        return json.dumps(facts, separators=(",", ":")).encode()


def loads(text: bytes) -> Json:
    """An object. Raises Unreadable for anything else."""
    try:
        facts = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            facts = json.loads(text)
        except ValueError:
            raise UnreadableMessage("it is no JSON") from None
    if not isinstance(facts, dict):
        raise UnreadableMessage("it is no object")
    return facts
