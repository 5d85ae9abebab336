"""The options of a run of Claude Code, as its spec.json holds them. The daemon writes them, so no SDK is imported.

Fields are named as the stored options are: specs of other releases are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any

from legion.drivers.profile import ToolLink
from legion.drivers.tree_states import StateStore


class PermissionMode(Enum):
    """What it may do without asking, by Claude Code's own names."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"
    PLAN = "plan"


@dataclass(frozen=True, kw_only=True)
class ClaudeOptions:
    conversation: str
    """A uuid of ours: the conversation starts with it, and is resumed where its transcript exists."""
    config_dir: Path
    """Where Claude Code keeps its transcripts; the agent's own, kept across its runs."""
    prompt: Path
    """A file with the text that starts a conversation."""
    again: Path
    """A file with the text that resumes a conversation."""
    rules: str
    """Added to Claude Code's own system prompt."""
    model: str = ""
    fallback_model: str = ""
    permission_mode: PermissionMode = PermissionMode.ACCEPT_EDITS
    allowed_tools: tuple[str, ...] = ()
    """Used without asking."""
    tools: tuple[str, ...] | None = None
    """The only tools that it has; None: all of Claude Code's own."""
    max_turns: int | None = None
    budget_usd: float | None = None
    asks: bool = False
    """Whether a tool that is not allowed becomes a question to a person; else it is denied."""
    prompt_id: str = ""
    """The uuid of the message that starts the run; empty: any."""
    patience: float = 3600.0
    """Seconds that a question waits for its answer; then it is denied."""
    desk: ToolLink | None = None
    """Legion's own tools; None: it has none of them."""
    fork_of: str = ""
    """The conversation that this one starts as a copy of, where it was rewound."""
    fork_at: str = ""
    """The last entry of that one's transcript that is copied; empty: all of it."""
    camera: StateStore | None = None
    """Where the tree is recorded from call to call; None: it is not."""
    streams: bool = False
    """Whether text is printed while the model writes it; else when it is complete."""

    def to_json(self) -> dict[str, Any]:
        facts = asdict(self)
        for name in ("config_dir", "prompt", "again"):
            facts[name] = str(facts[name])
        facts["permission_mode"] = self.permission_mode.value
        return facts

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> ClaudeOptions:
        """Options of another release may hold names that this one does not know; they are ignored."""
        known = {field.name: facts[field.name] for field in fields(ClaudeOptions) if field.name in facts}
        for name in ("config_dir", "prompt", "again"):
            known[name] = Path(known[name])
        known["permission_mode"] = PermissionMode(known["permission_mode"])
        known["allowed_tools"] = tuple(known["allowed_tools"])
        known["tools"] = None if known["tools"] is None else tuple(known["tools"])
        known["desk"] = None if known.get("desk") is None else ToolLink.from_json(known["desk"])
        known["camera"] = None if known.get("camera") is None else StateStore.from_json(known["camera"])
        return ClaudeOptions(**known)
