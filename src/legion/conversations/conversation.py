"""The facts of one conversation, its entries, and its text without anything that could drive a terminal."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

LONGEST_TITLE = 200
LONGEST_SHOWN = 400
"""Characters of a prompt or an answer that the facts hold; the entries hold all of it."""


class ConversationProgram(Enum):
    """The programs whose conversations are read."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    LEGION = "legion"
    """A run of Legion's own, of any driver."""


class EntryRole(Enum):
    PERSON = "person"
    AGENT = "agent"
    CALL = "call"
    """The agent used a tool."""
    RESULT = "result"
    """What the tool returned."""


@dataclass(frozen=True, kw_only=True)
class ConversationEntry:
    """One text of a conversation."""

    role: EntryRole
    text: str
    at: float
    """0: unknown."""


@dataclass(kw_only=True)
class TokenSums:
    """Tokens of one model in one conversation."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(kw_only=True)
class ConversationFacts:
    """Grows with every line of the conversation that is read."""

    program: ConversationProgram
    id: str
    parent: str = ""
    """The conversation whose subagent this is."""
    folder: str = ""
    """Where the program worked."""
    branch: str = ""
    title: str = ""
    """As the program has it; empty: the first prompt stands for it."""
    first_prompt: str = ""
    last_prompt: str = ""
    last_answer: str = ""
    messages: int = 0
    started_at: float = 0.0
    ended_at: float = 0.0
    model: str = ""
    tokens: dict[str, TokenSums] = field(default_factory=dict)
    usd: float = 0.0
    """As the program reports it; 0: it does not."""
    broken: int = 0
    """Lines that could not be read."""
    mark: str = ""
    """What the reader of its format has to remember between two lines."""

    def note_time(self, at: float) -> None:
        if at > 0:
            self.started_at = min(self.started_at or at, at)
            self.ended_at = max(self.ended_at, at)

    def note_prompt(self, text: str) -> None:
        shown = " ".join(text[: 2 * LONGEST_SHOWN].split())[:LONGEST_SHOWN]
        self.first_prompt = self.first_prompt or shown
        self.last_prompt = shown
        self.messages += 1

    def note_answer(self, text: str) -> None:
        self.last_answer = " ".join(text[: 2 * LONGEST_SHOWN].split())[:LONGEST_SHOWN]

    def note_title(self, title: object) -> None:
        if isinstance(title, str) and title.strip():
            self.title = " ".join(title[:LONGEST_TITLE].split())

    def sums(self, model: str) -> TokenSums:
        return self.tokens.setdefault(model, TokenSums())


_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]"
)
"""Colours, titles, moves of the cursor."""
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """Without control sequences and characters, marks that reverse the direction of text, and halves of characters."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", _SEQUENCES.sub("", text))
