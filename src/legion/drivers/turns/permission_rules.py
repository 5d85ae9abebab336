"""Builds the narrowest permission rule of Claude Code for a call, so that a person can allow it permanently. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

_EDITS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
_READS = {"Read": "file_path"}
_LONGEST = 300
_SPECIAL = set("()*\n\r\0")
"""Characters with a meaning in a rule, or that cannot be shown on one line."""


def rule_for(tool: str, input: Mapping[str, object]) -> str:
    """Empty where no rule allows exactly this."""
    if tool == "Bash":
        return _rule("Bash", input.get("command"))
    if tool in _EDITS:
        return _rule("Edit", _absolute(input.get(_EDITS[tool])))
    if tool in _READS:
        return _rule("Read", _absolute(input.get(_READS[tool])))
    if tool == "WebFetch":
        return _rule("WebFetch", _domain(input.get("url")))
    return tool if tool.startswith("mcp__") or tool == "WebSearch" else ""


def _rule(tool: str, content: object) -> str:
    if not isinstance(content, str) or not content.strip() or len(content) > _LONGEST or _SPECIAL & set(content):
        return ""
    return f"{tool}({content})"


def _absolute(path: object) -> object:
    """An absolute path in a rule starts with two slashes."""
    return f"/{path}" if isinstance(path, str) and path.startswith("/") else None


def _domain(url: object) -> object:
    try:
        host = urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return None
    return f"domain:{host}" if host else None
