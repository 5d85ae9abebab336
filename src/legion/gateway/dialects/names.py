"""Names and ids that one dialect allows and another does not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from legion.gateway.dialects.messages import ToolDefinition

_LONGEST = 64
_DIGEST = 8
_ODD = re.compile(r"[^a-zA-Z0-9_-]")


def short(name: str) -> str:
    """A tool's name as OpenAI's dialects take it; always the same for the same name."""
    if len(name) <= _LONGEST and not _ODD.search(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{_ODD.sub('_', name)[: _LONGEST - _DIGEST - 1]}_{digest}"


def shortened(tools: Iterable[ToolDefinition]) -> dict[str, str]:
    """From the short names back to the caller's own, where they differ."""
    return {short(tool.name): tool.name for tool in tools if short(tool.name) != tool.name}


def call_id(id: str) -> str:
    """An id of a call as Anthropic takes it."""
    return _ODD.sub("_", id)
