"""Shapes of requests and answers about conversations: those of the person's own agent programs, and Legion's runs."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class IndexState:
    """How far the index is; what it lacks is found later."""

    files: int
    bytes: int
    """To be read in this round."""
    bytes_done: int
    reading: bool
    complete: bool
    """Every file was read at least once."""


@dataclass(kw_only=True)
class ConversationLine:
    id: str
    program: str
    """`claude`, `codex`, `gemini`, `opencode`, or `legion` for a run of Legion's own."""
    project: str
    """The folder where the program worked."""
    branch: str
    title: str
    last_prompt: str
    last_answer: str
    messages: int
    started_at: float
    modified_at: float
    model: str
    usd: float | None
    """None: its model has no known price."""
    tokens: int
    bytes: int
    alive: bool
    """A program has it open now."""
    broken: int
    """Lines of its file that could not be read."""
    path: str
    ticket: int | None = None
    """The ticket of a run of Legion's own."""


@dataclass(kw_only=True)
class Conversations:
    schema: str = "legion.conversations/1"
    conversations: list[ConversationLine]
    index: IndexState


@dataclass(kw_only=True)
class SearchHit:
    conversation: ConversationLine
    role: str
    """`person`, `agent`, `call` or `result`."""
    at: float
    excerpt: str
    found: list[list[int]] = field(default_factory=list)
    """Start and end of each word that was searched for, in the excerpt."""


@dataclass(kw_only=True)
class SearchResult:
    schema: str = "legion.search/1"
    query: str
    hits: list[SearchHit]
    index: IndexState


@dataclass(kw_only=True)
class ExportedConversation:
    schema: str = "legion.export/1"
    id: str
    format: str
    name: str
    """A name for its file."""
    text: str


@dataclass(kw_only=True)
class ConversationSums:
    """Sums over conversations that have something in common."""

    key: str
    conversations: int
    messages: int
    tokens: int
    usd: float
    unpriced: int
    """Conversations with models that have no known price; `usd` is without them."""


@dataclass(kw_only=True)
class Analytics:
    schema: str = "legion.analytics/1"
    hours: float
    total: ConversationSums
    by_program: list[ConversationSums]
    by_project: list[ConversationSums]
    by_model: list[ConversationSums]
    by_day: list[ConversationSums]
    index: IndexState


@dataclass(kw_only=True)
class ConversationHealth:
    schema: str = "legion.conversationhealth/1"
    hours: float
    conversations: int
    bytes: int
    index_bytes: int
    stale: list[ConversationLine]
    """Not touched for 48 hours."""
    large: list[ConversationLine]
    """More than 1,000 messages."""
    orphaned: list[ConversationLine]
    """Their folder is gone."""
    broken: list[ConversationLine]
    """With lines that could not be read."""
    oldest: list[ConversationLine]
    largest: list[ConversationLine]
    counts: dict[str, int]
    """Of `stale`, `large`, `orphaned` and `broken`, which list at most 100 each."""
    index: IndexState


@dataclass(kw_only=True)
class AskConversation:
    id: str
    """Of a conversation, or the number of a ticket: its last conversation."""
    question: str
    model: str = ""


@dataclass(kw_only=True)
class ConversationAnswer:
    schema: str = "legion.conversationanswer/1"
    id: str
    answer: str
    usd: float | None
    seconds: float
