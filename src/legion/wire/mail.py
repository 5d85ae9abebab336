"""Shapes of requests and answers about mail."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class NewMessage:
    """A message to one agent, or to the person, who is called root."""

    to: str
    text: str
    now: bool = False
    """In the turn that it is in, if it is in one; else it waits for the next."""
    request: str = ""
    """The same request again gets the first answer."""
    reply_to: int = 0
    """The number of the message that it answers; `to` may be empty then."""


@dataclass(kw_only=True)
class FindMail:
    """All mail that the person can see: with this text, or of the conversation that a message belongs to."""

    text: str = ""
    thread: int = 0
    """The number of one message of the conversation."""


@dataclass(kw_only=True)
class ArchiveMail:
    """Put messages to the person away, by number; without numbers all that were read."""

    numbers: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class Broadcast:
    """A message to all agents below the caller, or below one of those."""

    text: str
    subtree: str = ""
    request: str = ""


@dataclass(kw_only=True)
class Sent:
    schema: str = "legion.sent/1"
    messages: list[str]
    """Their ids, one for each recipient."""
    to: list[str]
    heard: bool | None = None
    """Whether it was delivered already; null where it waits."""
    message: str


@dataclass(kw_only=True)
class ReadMail:
    """Reads the caller's own mail, or that of an agent below it. Reading marks the caller's own as read."""

    agent: str = ""
    dead: bool = False
    """What came back undelivered, of all that the caller can see."""
    all: bool = False
    """Also what was read, and what was sent."""


@dataclass(kw_only=True)
class MessageLine:
    number: int
    id: str
    sender: str
    sender_name: str
    recipient: str
    recipient_name: str
    kind: str
    """task, tell, result, returned or notice."""
    text: str
    sent_at: float
    delivery: str
    """waiting, offered (to a turn that has not heard it yet), heard or returned."""
    heard_at: float | None
    about: str
    """The message that this one returns."""
    reply_to: int | None = None
    """The number of the message that this one answers."""
    archived_at: float | None = None


@dataclass(kw_only=True)
class Mail:
    schema: str = "legion.mail/1"
    messages: list[MessageLine]
