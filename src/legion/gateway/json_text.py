"""JSON for the gateway: orjson, with the standard library for what orjson does not accept (lone surrogates)."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

Json = dict[str, Any]

_MODEL_KEY = re.compile(rb'"model"\s*:')
_ESCAPED_LETTER_OF_MODEL = re.compile(rb"\\u006[45c-fC-F]")


class UnreadableMessage(Exception):
    """Bytes or fields that are not what the dialect prescribes; the text says what was found."""


class NestedTooDeeply(UnreadableMessage):
    """JSON with more levels than the readers accept."""

    def __init__(self) -> None:
        super().__init__("its JSON is nested too deeply")


def dumps(facts: object) -> bytes:
    """Raises NestedTooDeeply."""
    try:
        return orjson.dumps(facts)
    except TypeError:
        # A lone surrogate, a number beyond 64 bits, or more than 254 levels.
        try:
            return json.dumps(facts, separators=(",", ":")).encode()
        except RecursionError:
            raise NestedTooDeeply from None


def loads(text: bytes) -> Json:
    """The object in the text. Raises UnreadableMessage for anything else."""
    try:
        facts = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            facts = json.loads(text)
        except RecursionError:
            raise NestedTooDeeply from None
        except ValueError:
            raise UnreadableMessage("it is not JSON") from None
    if not isinstance(facts, dict):
        raise UnreadableMessage("it is not a JSON object")
    return facts


def names_two_models(body: bytes, facts: Json) -> bool:
    """Whether the outermost object of a body has more than one key `model`, of which `facts` has only the last.

    A provider may read the first one, so rights that were checked on the last would not hold. Reading the keys exactly
    is slow, therefore it is done only where the body can have two: where it has more keys `model` than what was read
    from it, or spells one with escapes.
    """
    found = len(_MODEL_KEY.findall(body))
    escaped = _ESCAPED_LETTER_OF_MODEL.search(body) is not None
    if not escaped and (found < 2 or found == dumps(facts).count(b'"model":')):
        return False
    outermost: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        """Called for every object; the outermost one is the last."""
        outermost[:] = [name for name, _ in pairs]

    try:
        json.loads(body, object_pairs_hook=note)
    except RecursionError:
        raise NestedTooDeeply from None
    except ValueError:
        raise UnreadableMessage("it is not JSON") from None
    return outermost.count("model") > 1
