"""Counts the tokens of a request as a provider with a prompt cache does: read from the cache, written to it, and new.

A prefix of a request is its tools, system prompt and messages up to a block with `cache_control`. It is read from the
cache where an earlier request had the same one. Nothing expires.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from legion.rehearsal.protocol.anthropic import tokens

_MARK = "cache_control"
_NOT_PART = "x-anthropic-billing-header"
"""A block of the system prompt that the provider takes out."""


@dataclass(frozen=True, kw_only=True)
class CachedTokens:
    read: int
    written: int
    new: int


class PromptCache:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def count(self, body: Mapping[str, Any]) -> CachedTokens:
        digest, size, read, last = hashlib.sha256(), 0, 0, 0
        marked: list[str] = []
        for block in _blocks(body):
            text = json.dumps({name: value for name, value in block.items() if name != _MARK}, sort_keys=True)
            digest.update(text.encode())
            size += len(text)
            prefix = digest.hexdigest()
            if prefix in self._known:
                read = size
            if _MARK in block:
                last = size
                marked.append(prefix)
        self._known.update(marked)
        written = max(0, last - read)
        return CachedTokens(read=_tokens(read), written=_tokens(written), new=_tokens(size - read - written))


def _blocks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from body.get("tools") or ()
    for block in _listed(body.get("system") or ""):
        if not str(block.get("text", "")).startswith(_NOT_PART):
            yield {"part": "system", **block}
    for message in body.get("messages") or ():
        for block in _listed(message["content"]):
            yield {"part": message["role"], **block}


def _listed(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _tokens(size: int) -> int:
    return tokens(size) if size else 0
