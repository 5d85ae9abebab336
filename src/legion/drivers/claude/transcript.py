"""Reads Claude Code's transcripts: which messages reached the model, and where a conversation can be resumed or forked.

A transcript is stored where its agent can write, so no link is followed and every line may be anything. A forged one
misleads only the agent that reads it.
"""

from __future__ import annotations

import contextlib
import json
import re
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from legion.drivers.profile import ConversationSize
from legion.system import safe_files

_LONGEST_LINE = 64 << 20
_MOST_SEARCHED = 256 << 20
"""Bytes of a transcript that are searched for its first message."""
_FOLDERS = 2
"""Between the agent's own folder and a transcript."""
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9]")
"""Claude Code writes a dash for each in the name of a folder."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def has_messages(config_dir: Path, conversation: str) -> bool:
    """Whether this conversation can be resumed."""
    return any(_is_readable(path) and _has_message(path) for path in _files(config_dir, conversation))


def put_aside(config_dir: Path, conversation: str) -> None:
    """Rename a transcript that cannot be resumed: Claude Code starts no conversation whose name is taken."""
    for path in _files(config_dir, conversation):
        path.rename(path.with_suffix(f".{time.time_ns()}.unused"))


def is_there(config_dir: Path, conversation: str) -> bool:
    return any(_is_readable(path) for path in _files(config_dir, conversation))


def file_of(config_dir: Path, conversation: str) -> Path | None:
    return next((path for path in _files(config_dir, conversation) if _is_readable(path)), None)


def copy(transcript: Path, config_dir: Path, conversation: str, tree: Path) -> None:
    """Copy a transcript to where Claude Code looks for it when it works in that tree. Repeated, it copies again."""
    folder = _NOT_IN_NAMES.sub("-", str(tree))
    with _opened(transcript) as content:
        safe_files.write(config_dir, f"projects/{folder}/{conversation}.jsonl", content.read())


def delivered(config_dir: Path, conversation: str, ids: Collection[str]) -> frozenset[str]:
    """Those of our messages that the conversation holds. What waits in the program's queue is not part of it yet."""
    found: set[str] = set()
    for path in _files(config_dir, conversation):
        if not _is_readable(path):
            continue
        with _opened(path) as lines:
            while line := lines.readline(_LONGEST_LINE):
                if any(id.encode() in line for id in ids):
                    found.update(_messages_in(line))
    return frozenset(found & set(ids))


def point_after(config_dir: Path, conversation: str, call: str) -> str | None:
    """The entry that ends the answer which made this call; None where it is missing, or not all calls returned."""
    for path in _files(config_dir, conversation):
        if _is_readable(path):
            found = _point(list(_entries(path)), call)
            if found is not None:
                return found
    return None


def size(config_dir: Path, conversation: str) -> ConversationSize:
    """By the usage of the last answer: its input is the whole conversation."""
    tokens, compacted = 0, False
    for path in _files(config_dir, conversation):
        if _is_readable(path):
            for entry in _entries(path):
                if entry["type"] == "assistant":
                    tokens = _context_tokens(entry["message"].get("usage")) or tokens
            compacted = compacted or _was_compacted(path)
    return ConversationSize(tokens=tokens, compacted=compacted)


def _context_tokens(usage: object) -> int:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    counted = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    return sum(one for one in counted if isinstance(one, int) and one > 0)


def _was_compacted(transcript: Path) -> bool:
    with _opened(transcript) as lines:
        while line := lines.readline(_LONGEST_LINE):
            if b"compact_boundary" in line:
                with contextlib.suppress(ValueError):
                    entry = json.loads(line)
                    if isinstance(entry, dict) and entry.get("subtype") == "compact_boundary":
                        return True
    return False


def _files(config_dir: Path, conversation: str) -> list[Path]:
    """Claude Code names a folder after the worktree; a conversation has one file, whatever the folder's name is."""
    found = config_dir.glob(f"projects/*/{conversation}.jsonl")
    return sorted(path for path in found if not (path.parent.is_symlink() or path.parents[1].is_symlink()))


def _opened(transcript: Path) -> BinaryIO:
    """Its agent may exchange it, or a folder above it, for a link at any time. Raises FileNotFoundError."""
    top = transcript.parents[_FOLDERS]
    file = safe_files.opened(top, str(transcript.relative_to(top)))
    if file is None:
        raise FileNotFoundError(f"{transcript} is no longer a transcript")
    return file


def _is_readable(transcript: Path) -> bool:
    """By the mode alone: inside its sandbox even root has no other right."""
    mode = transcript.lstat().st_mode
    return stat.S_ISREG(mode) and bool(mode & stat.S_IRUSR)


def _has_message(transcript: Path) -> bool:
    with _opened(transcript) as lines:
        while lines.tell() < _MOST_SEARCHED and (line := lines.readline(_LONGEST_LINE)):
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("type") in ("user", "assistant"):
                    return True
    return False


def _messages_in(line: bytes) -> Iterator[str]:
    """The uuid of a turn's first message, or of one that came in the middle of a turn."""
    with contextlib.suppress(ValueError):
        entry = json.loads(line)
        match entry:
            case {"type": "user", "uuid": str(uuid)}:
                yield uuid
            case {"type": "attachment", "attachment": {"type": "queued_command", "source_uuid": str(uuid)}}:
                yield uuid


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
    """The entries of the conversation itself, without those of its subagents."""
    with _opened(path) as lines:
        while line := lines.readline(_LONGEST_LINE):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if _is_message(entry) and _UUID.fullmatch(str(entry.get("uuid"))) and not entry.get("isSidechain"):
                yield entry


def _is_message(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    return entry.get("type") in ("user", "assistant") and isinstance(entry.get("message"), dict)
