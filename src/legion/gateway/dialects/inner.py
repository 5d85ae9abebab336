"""The inner form: a request, an answer and the events of a streamed answer, in no dialect's words.

Every dialect is read into it and written from it. Knows none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from legion.gateway.counting import NOTHING, Usage

Json = dict[str, Any]


class Unreadable(Exception):
    """What came is not what the dialect says it should be; the sentence says what was found."""


class ModelFailed(Exception):
    """A whole answer that is an error, although its status says that all is well."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Role(Enum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    """An instruction in the middle of a conversation."""


class Effort(Enum):
    """How much the model shall think before it answers."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Stop(Enum):
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
class Text:
    text: str
    cached: bool = False
    """The caller wants the prompt cached up to here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """As a URL, which may hold the image itself (`data:`)."""

    url: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    url: str
    name: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Thinking:
    """What the model thought. Without a seal nobody takes it back, so it is then dropped whole."""

    text: str = ""
    seal: str = ""
    """Who made it and what proves it: see `seals`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A use of a tool."""

    id: str
    name: str
    input: str
    """JSON, as the model wrote it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a tool gave back."""

    call: str
    content: tuple[Text | Image | Document, ...]
    failed: bool = False


Part = Text | Image | Document | Thinking | Call | Result
Said = Text | Thinking | Call
"""What a model can say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    name: str
    schema: Json | None
    """None: its input is one free text."""
    description: str = ""
    strict: bool | None = None


class Choice(Enum):
    """Which tools the model may or must use; a single one is named beside."""

    AUTO = "auto"
    ANY = "any"
    NONE = "none"
    ONE = "one"


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """The answer has to be JSON."""

    schema: Json | None
    """None: any object."""
    name: str = "answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    model: str
    messages: tuple[Message, ...]
    system: tuple[Text, ...] = ()
    tools: tuple[Tool, ...] = ()
    choice: Choice = Choice.AUTO
    chosen: str = ""
    """The tool, with Choice.ONE."""
    parallel: bool = True
    longest: int | None = None
    """Tokens that the answer may have."""
    temperature: float | None = None
    top_p: float | None = None
    stops: tuple[str, ...] = ()
    effort: Effort | None = None
    format: Format | None = None
    stream: bool = False
    count_stream: bool = True
    """A streamed answer shall tell its usage."""
    user: str = ""
    conversation: str = ""
    """Requests with the same word share most of their prompt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    id: str
    model: str
    parts: tuple[Said, ...]
    stop: Stop
    sequence: str | None = None
    """The text that stopped it, with Stop.SEQUENCE."""
    usage: Usage = NOTHING


class Kind(Enum):
    """What a part of a stream is."""

    TEXT = "text"
    THINKING = "thinking"
    CALL = "call"


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    id: str
    model: str
    usage: Usage = NOTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class PartBegun:
    index: int
    kind: Kind
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class PartGrew:
    index: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PartSealed:
    index: int
    seal: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PartEnded:
    index: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    stop: Stop
    sequence: str | None = None
    usage: Usage = NOTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """Nothing new, but the connection lives."""


class FaultKind(Enum):
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
class Fault:
    kind: FaultKind
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """The stream ends with an error."""

    fault: Fault


Event = Begun | PartBegun | PartGrew | PartSealed | PartEnded | Ended | Waiting | Failed


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What has to be known of a request to read its answer and write it for the caller."""

    model: str = ""
    free: frozenset[str] = field(default_factory=frozenset)
    """Tools whose input is one free text."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of tools as they were sent, where they had to be shortened, to the caller's own."""
    count_stream: bool = True
    at: int = 0
    """When it was asked, in seconds since 1970."""
