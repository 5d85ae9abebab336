"""Conversations of the person's own agent programs and of Legion's runs; adoption and handoff."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass
from legion.wire.table import Count, Hours, OpenTo, Seconds, Table, Text, TicketId, operation
from legion.wire.ticket_fields import REQUIRED, described


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
    id: str = described(REQUIRED, argument="RUN", help="A ticket's number, or the id of a conversation.")
    question: str = described(REQUIRED, argument="QUESTION", help="What you want to know.")
    model: str = described("", metavar="NAME", help="The model that answers; default: as in your settings.")


@dataclass(kw_only=True)
class ConversationAnswer:
    schema: str = "legion.conversationanswer/1"
    id: str
    answer: str
    usd: float | None
    seconds: float


@dataclass(kw_only=True)
class AdoptConversation:
    cwd: str
    id: str = described("", argument="[SESSION]", help="The start of its id; the last one of the project if left out.")
    text: str = described("", argument="[TEXT]", help="What is left to do.")
    title: str = described("", short="-t", metavar="TITLE", help="Default: the title of the conversation.")
    team: str = described("", metavar="NAME", help="The team that works on it.")


@dataclass(kw_only=True)
class _TakenOver:
    ticket: int
    conversation: str
    folder: str
    message: str


@dataclass(kw_only=True)
class Adopted(_TakenOver):
    schema: str = "legion.adopted/1"
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class HandedOff(_TakenOver):
    schema: str = "legion.handedoff/1"
    folder: str
    """The worktree."""
    transcript: str
    argv: list[str]
    """The command that resumes the conversation in that folder."""


class ConversationRows(Table):
    """They are the person's alone: no agent reads what the person said elsewhere."""

    @operation("GET", "/v1/conversations", open_to=OpenTo.LOOKS, waits=True)
    def conversations(self, hours: Hours = 168.0, timeout: Seconds = 2.0) -> Conversations:
        """Conversations of the person's agent programs and of Legion's runs, newest first"""

    @operation("GET", "/v1/conversations/search", open_to=OpenTo.LOOKS, waits=True)
    def search_conversations(
        self, query: Text, hours: Hours = 100_000.0, most: Count = 20, timeout: Seconds = 2.0
    ) -> SearchResult:
        """Full-text search in conversations, newest first"""

    @operation("GET", "/v1/conversations/export", open_to=OpenTo.READ_ONLY | OpenTo.BROWSER, waits=True)
    def export_conversation(self, id: Text = "", format: Text = "md") -> ExportedConversation:
        """One conversation as a document; without an id the last one"""

    @operation("GET", "/v1/conversations/analytics", open_to=OpenTo.LOOKS, waits=True)
    def analytics(self, hours: Hours = 24.0, timeout: Seconds = 2.0) -> Analytics:
        """Sums over conversations, by program, project, model and day"""

    @operation("GET", "/v1/conversations/health", open_to=OpenTo.LOOKS, waits=True)
    def conversation_health(self, hours: Hours = 168.0, timeout: Seconds = 2.0) -> ConversationHealth:
        """Conversations that are stale, large, orphaned or damaged, and the space that they take"""

    @operation("POST", "/v1/conversations/ask", open_to=OpenTo.BROWSER, waits=True)
    def ask_conversation(self, wanted: AskConversation, /) -> ConversationAnswer:
        """Ask a finished conversation; - reads the question from stdin

        RUN is a ticket's number, or the id of a conversation. A copy of the conversation answers: it can read and
        change nothing, and the conversation stays as it is. The answer costs tokens for all of the conversation.
        """

    @operation("POST", "/v1/conversations/adopt", open_to=OpenTo.BROWSER, created=True, waits=True)
    def adopt(self, wanted: AdoptConversation, /) -> Adopted:
        """Make a ticket of a conversation of your own Claude Code; it continues in the squad

        SESSION is the start of its id; without it, the last conversation in this project. The conversation is copied,
        and the files of your checkout, committed or not, are what the ticket starts from. Your checkout stays as it is.
        """

    @operation("POST", "/v1/tickets/{id}/handoff", open_to=OpenTo.BROWSER, waits=True)
    def handoff(self, id: TicketId, /) -> HandedOff:
        """Pause a ticket and give its conversation to the person's own program"""
