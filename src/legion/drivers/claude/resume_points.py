"""Where in a transcript a conversation can be taken up again: behind an answer all of whose calls have returned.

The transcript lies where its agent can write. A forged one deceives nobody but the agent that reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from legion.drivers.claude.options import can_be_read, transcripts

_LONGEST_LINE = 64 << 20
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def point_after(config_dir: Path, conversation: str, call: str) -> str | None:
    """The entry that ends the answer which made this call; None where it is not there, or has not ended."""
    for path in transcripts(config_dir, conversation):
        if can_be_read(path):
            found = _point(list(_entries(path)), call)
            if found is not None:
                return found
    return None


def is_there(config_dir: Path, conversation: str) -> bool:
    return any(can_be_read(path) for path in transcripts(config_dir, conversation))


def _point(entries: list[dict[str, Any]], call: str) -> str | None:
    made: dict[str, set[str]] = {}
    for entry in entries:
        if entry["type"] == "assistant":
            made.setdefault(str(entry["message"].get("id")), set()).update(_blocks(entry, "tool_use", "id"))
    together: set[str] = next((calls for calls in made.values() if call in calls), set())
    point, missing = None, set(together)
    for entry in entries:
        returned = _blocks(entry, "tool_result", "tool_use_id") & together if entry["type"] == "user" else set()
        if returned:
            point, missing = str(entry["uuid"]), missing - returned
    return None if missing else point


def _blocks(entry: dict[str, Any], kind: str, key: str) -> set[str]:
    content = entry["message"].get("content")
    blocks = content if isinstance(content, list) else []
    return {str(block.get(key)) for block in blocks if isinstance(block, dict) and block.get("type") == kind}


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """Those of the conversation itself, not of its subagents."""
    with path.open("rb") as lines:
        while line := lines.readline(_LONGEST_LINE):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if _is_plain(entry) and _UUID.fullmatch(str(entry.get("uuid"))) and not entry.get("isSidechain"):
                yield entry


def _is_plain(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    return entry.get("type") in ("user", "assistant") and isinstance(entry.get("message"), dict)
