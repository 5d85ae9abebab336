"""A person's home with conversations in it, as the real programs wrote them: data/ has their files, shortened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from legion.conversations.places import ConversationPlaces

DATA = Path(__file__).parent / "data"
CLAUDE = "c8d6e9e9-ad85-4bd2-a9a6-23cacd675085"
CODEX = "01a1e46a-68fb-7a02-81c2-137257e26f10"
GEMINI = "5b720261-1b2a-41b8-8783-74d78dbc5db8"
OPENCODE = "ses_e1b9574d3ffeerXTU78Xgv3wfq"


@dataclass(frozen=True)
class Home:
    root: Path

    @property
    def environment(self) -> Mapping[str, str]:
        return {"HOME": str(self.root)}

    @property
    def places(self) -> ConversationPlaces:
        return ConversationPlaces.of_person(self.environment, self.root / "runs")

    @property
    def claude(self) -> Path:
        return self.root / f".claude/projects/-home-ada-shop/{CLAUDE}.jsonl"

    @property
    def opencode(self) -> Path:
        return self.root / ".local/share/opencode/opencode.db"

    def fill(self) -> Home:
        """One conversation of each program."""
        self.write(self.claude, (DATA / "claude.jsonl").read_bytes())
        day = self.root / ".codex/sessions/2026/11/16"
        self.write(day / f"rollout-2026-11-16T12-52-21-{CODEX}.jsonl", (DATA / "codex.jsonl").read_bytes())
        chats = self.root / ".gemini/tmp/shop/chats"
        self.write(chats / "session-2026-11-16T12-53-5b720261.jsonl", (DATA / "gemini.jsonl").read_bytes())
        self.write(chats.parent / ".project_root", b"/home/ada/shop\n")
        self.opencode.parent.mkdir(parents=True)
        database = sqlite3.connect(self.opencode)
        database.executescript((DATA / "opencode.sql").read_text())
        database.close()
        return self

    def write(self, path: Path, content: bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def append(self, path: Path, content: bytes) -> None:
        with path.open("ab") as file:
            file.write(content)


def said(text: str, *, at: str = "2026-11-16T13:00:00.000Z", id: str = "msg_later") -> bytes:
    """A line of Claude Code's, with an answer of the agent."""
    message = {
        "id": id,
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    line = {"type": "assistant", "timestamp": at, "cwd": "/home/ada/shop", "message": message}
    return json.dumps(line).encode() + b"\n"
