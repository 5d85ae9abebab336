"""What a run of Claude Code is told, as it lies in the run's spec. No SDK here: the daemon writes it."""

from __future__ import annotations

import contextlib
import json
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any

from legion.drivers.claude.tree_states import StateStore

_LONGEST_LINE = 64 << 20
_LONGEST_LOOK = 256 << 20


class PermissionMode(Enum):
    """What it may do without asking, in Claude Code's own words."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"
    PLAN = "plan"


@dataclass(frozen=True, kw_only=True)
class ToolText:
    """A tool of Legion's as the model reads it."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolLink:
    """How the runner reaches the daemon on the agent's behalf, and which tools that gives."""

    record: str
    """The file that says where the daemon of the moment listens."""
    token: str
    """The agent's own; it stays in the runner."""
    server: str
    tools: tuple[ToolText, ...]

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> ToolLink:
        tools = tuple(
            ToolText(name=t["name"], description=t["description"], schema=t["schema"]) for t in facts["tools"]
        )
        return ToolLink(record=facts["record"], token=facts["token"], server=facts["server"], tools=tools)


@dataclass(frozen=True, kw_only=True)
class ClaudeOptions:
    conversation: str
    """A uuid of ours: the conversation begins with it, and goes on where its transcript is there already."""
    config_dir: Path
    """Where Claude Code keeps its transcripts; the agent's own, kept across its runs."""
    prompt: Path
    """A file with the words that begin a conversation."""
    again: Path
    """A file with the words for a conversation that goes on."""
    rules: str
    """Added to Claude Code's own system prompt."""
    model: str = ""
    fallback_model: str = ""
    permission_mode: PermissionMode = PermissionMode.ACCEPT_EDITS
    allowed_tools: tuple[str, ...] = ()
    """Used without asking."""
    tools: tuple[str, ...] | None = None
    """The tools that there are; None: all of Claude Code's own."""
    max_turns: int | None = None
    budget_usd: float | None = None
    asks: bool = False
    """Whether a tool that is not allowed becomes a question to a person; else it is denied."""
    prompt_id: str = ""
    """The uuid of the message that begins the run; empty: any."""
    patience: float = 3600.0
    """Seconds that a question waits for its answer; then it is denied."""
    desk: ToolLink | None = None
    """None: Legion's tools are not there."""
    fork_of: str = ""
    """The conversation that this one begins as a copy of, where it was rewound."""
    fork_at: str = ""
    """The last entry of that one's transcript that is copied; empty: all of it."""
    camera: StateStore | None = None
    """None: the tree is not kept from call to call."""

    def to_json(self) -> dict[str, Any]:
        facts = asdict(self)
        for name in ("config_dir", "prompt", "again"):
            facts[name] = str(facts[name])
        facts["permission_mode"] = self.permission_mode.value
        return facts

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> ClaudeOptions:
        """Options of another release may hold names that this one does not know; they are passed over."""
        known = {field.name: facts[field.name] for field in fields(ClaudeOptions) if field.name in facts}
        for name in ("config_dir", "prompt", "again"):
            known[name] = Path(known[name])
        known["permission_mode"] = PermissionMode(known["permission_mode"])
        known["allowed_tools"] = tuple(known["allowed_tools"])
        known["tools"] = None if known["tools"] is None else tuple(known["tools"])
        known["desk"] = None if known.get("desk") is None else ToolLink.from_json(known["desk"])
        known["camera"] = None if known.get("camera") is None else StateStore.from_json(known["camera"])
        return ClaudeOptions(**known)


def has_begun(options: ClaudeOptions) -> bool:
    """Whether this conversation has a transcript that it can go on from."""
    return any(can_be_read(path) and _holds_a_message(path) for path in _transcripts(options))


def clear_the_way(options: ClaudeOptions) -> None:
    """What nothing can go on from is put aside: no conversation of the same name begins beside it."""
    for path in _transcripts(options):
        path.rename(path.with_suffix(f".{time.time_ns()}.unused"))


def heard_of(config_dir: Path, conversation: str, ids: Collection[str]) -> frozenset[str]:
    """Those of our messages that the conversation holds. What waits in the program's queue is no part of it yet."""
    found: set[str] = set()
    for path in transcripts(config_dir, conversation):
        if not can_be_read(path):
            continue
        with path.open("rb") as lines:
            while line := lines.readline(_LONGEST_LINE):
                if any(id.encode() in line for id in ids):
                    found.update(_messages_in(line))
    return frozenset(found & set(ids))


def _messages_in(line: bytes) -> Iterator[str]:
    """By their uuids: of a turn's first message, and of one that came in the middle of a turn."""
    with contextlib.suppress(ValueError):
        entry = json.loads(line)
        match entry:
            case {"type": "user", "uuid": str(uuid)}:
                yield uuid
            case {"type": "attachment", "attachment": {"type": "queued_command", "source_uuid": str(uuid)}}:
                yield uuid


def _transcripts(options: ClaudeOptions) -> list[Path]:
    return transcripts(options.config_dir, options.conversation)


def transcripts(config_dir: Path, conversation: str) -> list[Path]:
    """Claude Code files transcripts by folder; a conversation has one, whatever the folder is called.

    The agent can write here, so no link is followed out of its folder.
    """
    found = config_dir.glob(f"projects/*/{conversation}.jsonl")
    return sorted(path for path in found if not (path.parent.is_symlink() or path.parents[1].is_symlink()))


def can_be_read(transcript: Path) -> bool:
    """By the mode alone: inside its sandbox even root has no other right."""
    mode = transcript.lstat().st_mode
    return stat.S_ISREG(mode) and bool(mode & stat.S_IRUSR)


def _holds_a_message(transcript: Path) -> bool:
    with transcript.open("rb") as lines:
        while lines.tell() < _LONGEST_LOOK and (line := lines.readline(_LONGEST_LINE)):
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("type") in ("user", "assistant"):
                    return True
    return False
