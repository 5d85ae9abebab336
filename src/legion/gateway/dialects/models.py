"""What is known of models by their names: how they are asked to think. Everything else is the same for all."""

from __future__ import annotations

import re

_REASONING = re.compile(r"(openai/)?(o\d|gpt-([5-9]|\d\d)|codex|computer-use)", re.IGNORECASE)
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d)(?:[-.](\d{1,2})(?!\d))?")
_ADAPTIVE_SINCE = (4, 6)


def reasons(model: str) -> bool:
    """One of OpenAI's that takes an effort, and counts its longest answer under another name."""
    return _REASONING.match(model) is not None


def thinks_adaptively(model: str) -> bool:
    """One of Anthropic's that decides by itself how long it thinks."""
    found = _CLAUDE.search(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _ADAPTIVE_SINCE


def is_claude_elsewhere(model: str) -> bool:
    """Of Anthropic's, behind an API like OpenAI's, which takes its marks for caching too."""
    return model.startswith("anthropic/")
