"""The inner form: a request, an answer and the events of a streamed answer, in no dialect's words.

Every dialect is read into it and written from it. Knows none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from legion.gateway.counting.counters import NO_TOKENS, TokenCounts
from legion.gateway.json_text import Json


class ModelFailed(Exception):
    """A whole answer that is an error, although its status says that all is well."""

    def __init__(self, fault: ModelError) -> None:
        super().__init__(fault.message)
        self.error = fault


class ChatRole(Enum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    """An instruction in the middle of a conversation."""


class Effort(Enum):
    """How much the model shall think before it answers."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class StopReason(Enum):
    """Why the model ended its turn."""

    END = "end"
    CALLS = "calls"
    """It waits for the results of tools."""
    LENGTH = "length"
    SEQUENCE = "sequence"
    REFUSAL = "refusal"
    PAUSE = "pause"
    """It wants to be asked again as it is."""


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
    """What the model thought. Without a seal nobody takes it back, so it is then dropped whole."""

    text: str = ""
    signature: str = ""
    """Who made it and what proves it: see `signatures`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallPart:
    """A use of a tool."""

    id: str
    name: str
    input: str
    """JSON, as the model wrote it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResultPart:
    """What a tool gave back."""

    call: str
    content: tuple[TextPart | ImagePart | DocumentPart, ...]
    failed: bool = False


Part = TextPart | ImagePart | DocumentPart | ThinkingPart | ToolCallPart | ToolResultPart
AnswerPart = TextPart | ThinkingPart | ToolCallPart
"""What a model can say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatMessage:
    role: ChatRole
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolDefinition:
    name: str
    schema: Json | None
    """None: its input is one free text."""
    description: str = ""
    strict: bool | None = None


class ToolChoice(Enum):
    """Which tools the model may or must use; a single one is named beside."""

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
    """The tool, with Choice.ONE."""
    parallel: bool = True
    longest: int | None = None
    """Tokens that the answer may have."""
    temperature: float | None = None
    top_p: float | None = None
    stops: tuple[str, ...] = ()
    effort: Effort | None = None
    format: OutputFormat | None = None
    stream: bool = False
    count_stream: bool = True
    """A streamed answer shall tell its usage."""
    user: str = ""
    conversation: str = ""
    """Requests with the same word share most of their prompt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelAnswer:
    id: str
    model: str
    parts: tuple[AnswerPart, ...]
    stop: StopReason
    sequence: str | None = None
    """The text that stopped it, with Stop.SEQUENCE."""
    usage: TokenCounts = NO_TOKENS


class PartKind(Enum):
    """What a part of a stream is."""

    TEXT = "text"
    THINKING = "thinking"
    CALL = "call"


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerBegun:
    id: str
    model: str
    usage: TokenCounts = NO_TOKENS


@dataclass(frozen=True, kw_only=True, slots=True)
class PartBegun:
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
    """Nothing new, but the connection lives."""


class ModelErrorKind(Enum):
    INVALID = "invalid"
    TOO_LONG = "too_long"
    """The prompt does not fit into the model: agent programs shorten it and go on."""
    AUTHENTICATION = "authentication"
    BILLING = "billing"
    """The account has no money: asking again does not help."""
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


Event = AnswerBegun | PartBegun | PartGrew | PartSigned | PartEnded | AnswerEnded | KeepAlive | AnswerFailed


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestInfo:
    """What has to be known of a request to read its answer and write it for the caller."""

    model: str = ""
    free: frozenset[str] = field(default_factory=frozenset)
    """Tools whose input is one free text."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of tools as they were sent, where they had to be shortened, to the caller's own."""
    count_stream: bool = True
    at: int = 0
    """When it was asked, in seconds since 1970."""
