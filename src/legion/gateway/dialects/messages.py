"""The common form of all dialects: a request, an answer, and the events of a streamed answer.

Every dialect is read into it and written from it; it depends on none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from legion.gateway.counting.counters import NO_TOKENS, TokenCounts
from legion.gateway.json_text import Json


class ModelFailed(Exception):
    """A complete answer that is an error although its status is 200."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(error.message)
        self.error = error


class ChatRole(Enum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    """An instruction in the middle of a conversation."""


class Effort(Enum):
    """How much the model thinks before it answers."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class StopReason(Enum):
    """Why the model ended its turn."""

    END = "end"
    CALLS = "calls"
    """The model waits for the results of tools."""
    LENGTH = "length"
    SEQUENCE = "sequence"
    REFUSAL = "refusal"
    PAUSE = "pause"
    """The same request has to be sent again, with this answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPart:
    text: str
    cached: bool = False
    """The caller wants the prompt cached up to here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImagePart:
    """As a URL, which may hold the image itself (`data:`)."""

    url: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentPart:
    url: str
    name: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ThinkingPart:
    """Thinking of the model. Without a signature no provider accepts it, so it is dropped."""

    text: str = ""
    signature: str = ""
    """The provider and its proof: see `signatures`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallPart:
    """A call of a tool."""

    id: str
    name: str
    input: str
    """JSON, as the model wrote it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResultPart:
    """The result of a tool."""

    call: str
    content: tuple[TextPart | ImagePart | DocumentPart, ...]
    failed: bool = False


Part = TextPart | ImagePart | DocumentPart | ThinkingPart | ToolCallPart | ToolResultPart
AnswerPart = TextPart | ThinkingPart | ToolCallPart
"""The parts that an answer can have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatMessage:
    role: ChatRole
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolDefinition:
    name: str
    schema: Json | None
    """None: the input is one free text."""
    description: str = ""
    strict: bool | None = None


class ToolChoice(Enum):
    """Which tools the model may or must use; ONE comes with a name."""

    AUTO = "auto"
    ANY = "any"
    NONE = "none"
    ONE = "one"


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputFormat:
    """The answer has to be JSON."""

    schema: Json | None
    """None: any object."""
    name: str = "answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    model: str
    messages: tuple[ChatMessage, ...]
    system: tuple[TextPart, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    choice: ToolChoice = ToolChoice.AUTO
    chosen: str = ""
    """The tool, with ToolChoice.ONE."""
    parallel: bool = True
    max_tokens: int | None = None
    """Maximal tokens of the answer."""
    temperature: float | None = None
    top_p: float | None = None
    stops: tuple[str, ...] = ()
    effort: Effort | None = None
    format: OutputFormat | None = None
    stream: bool = False
    count_stream: bool = True
    """A streamed answer includes its usage."""
    user: str = ""
    conversation: str = ""
    """Requests with the same value share most of their prompt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelAnswer:
    id: str
    model: str
    parts: tuple[AnswerPart, ...]
    stop: StopReason
    sequence: str | None = None
    """The text that stopped it, with StopReason.SEQUENCE."""
    usage: TokenCounts = NO_TOKENS


class PartKind(Enum):
    """The kind of a part in a stream."""

    TEXT = "text"
    THINKING = "thinking"
    CALL = "call"


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerStarted:
    id: str
    model: str
    usage: TokenCounts = NO_TOKENS


@dataclass(frozen=True, kw_only=True, slots=True)
class PartStarted:
    index: int
    kind: PartKind
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class PartGrew:
    index: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PartSigned:
    index: int
    signature: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PartEnded:
    index: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerEnded:
    stop: StopReason
    sequence: str | None = None
    usage: TokenCounts = NO_TOKENS


@dataclass(frozen=True, kw_only=True, slots=True)
class KeepAlive:
    """Keeps the connection open, without content."""


class ModelErrorKind(Enum):
    INVALID = "invalid"
    TOO_LONG = "too_long"
    """The prompt does not fit into the model: agent programs shorten it and continue."""
    AUTHENTICATION = "authentication"
    BILLING = "billing"
    """The account has no money: a retry does not help."""
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    TOO_LARGE = "too_large"
    LIMIT = "limit"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    API = "api"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelError:
    kind: ModelErrorKind
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerFailed:
    """The stream ends with an error."""

    error: ModelError


Event = AnswerStarted | PartStarted | PartGrew | PartSigned | PartEnded | AnswerEnded | KeepAlive | AnswerFailed


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestInfo:
    """Facts of a request that are needed to read its answer and write it for the caller."""

    model: str = ""
    free: frozenset[str] = field(default_factory=frozenset)
    """Tools whose input is one free text."""
    names: dict[str, str] = field(default_factory=dict)
    """Shortened names of tools, as sent to the provider, mapped to the caller's own."""
    count_stream: bool = True
    at: int = 0
    """Time of the request, in seconds since 1970."""
