"""Mail between agents and people, and the inbox of questions."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.lazy import dataclass
from legion.wire.table import OpenTo, QuestionId, Table, operation
from legion.wire.ticket_fields import REQUIRED, described

if TYPE_CHECKING:
    from legion import wire


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

    text: str = described(REQUIRED, argument="MESSAGE", help="What it says.")
    subtree: str = described("", metavar="ID", help="Only this agent and all agents below it.")
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


@dataclass(kw_only=True)
class QuestionLine:
    """A question that waits for an answer."""

    id: int
    project: str
    ticket: int | None
    title: str
    words: str
    asked_at: float
    deadline: float
    """Unanswered until then, it is settled with `default`."""
    kind: str = "permission"
    """permission, plan, budget, conflict, change, attempts, review, ask or goal."""
    agent: str = ""
    """The standing agent that asks."""
    name: str = ""
    """Its name."""
    facts: dict[str, str] = field(default_factory=dict)
    """What a person needs to know to answer, by name."""
    choices: list[str] = field(default_factory=list)
    """What it can be answered with; empty: any words."""
    default: str = ""


@dataclass(kw_only=True)
class WaitingLine:
    """Something that only the person moves on."""

    kind: str
    """question, plan, failed (a ticket) or collect (landed commits that their branch lacks)."""
    id: int
    """The number of the question, plan or ticket; 0 for commits."""
    project: str
    root: str
    ticket: int | None = None
    title: str
    words: str
    """What there is to decide."""
    since: float
    holds_up: int
    """Tickets that cannot go on before it is decided."""
    facts: dict[str, str] = field(default_factory=dict)
    """What a person needs to know to decide, by name. Of a question: in its own line."""
    offers: list[str] = field(default_factory=list)
    """The operations that decide it, what moves it on first. A question is answered."""


@dataclass(kw_only=True)
class Inbox:
    schema: str = "legion.inbox/1"
    questions: list[QuestionLine]
    waiting: list[WaitingLine] = field(default_factory=list)
    """All that waits for the person, questions among it: first what is settled without them soon, then what holds up
    most tickets. Empty for an agent.
    """


@dataclass(kw_only=True)
class AnswerQuestion:
    """A person's answer to a question."""

    choice: str = ""
    """One of the question's choices, or words where it has none."""
    allowed: bool | None = None
    """Of a permission only, instead of the choice: yes or no."""
    why: str = ""
    """Words that go with the choice."""


@dataclass(kw_only=True)
class Answered:
    schema: str = "legion.answered/1"
    question: int
    ticket: int | None
    allowed: bool | None
    """Of a permission; null for other questions."""
    message: str
    choice: str = ""


@dataclass(kw_only=True)
class MessageText:
    """The body of tell and interrupt."""

    text: str = ""


@dataclass(kw_only=True)
class Delivered:
    schema: str = "legion.told/1"
    ticket: int
    run: int
    heard: bool | None
    """Null where it waits for its turn, or nothing was said."""
    message: str


class MailRows(Table):
    """The caller is the one that acts."""

    @operation("GET", "/v1/inbox", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def inbox(self) -> Inbox:
        """What waits for you in all projects, most urgent first: questions, plans, failures, commits to collect"""

    @operation(
        "POST",
        "/v1/questions/{id}/answer",
        open_to=OpenTo.ACTS | OpenTo.AGENTS,
        plain="choice allowed why",
        asks="From now on every agent may use this without asking: {what}. Save this rule?",
    )
    def answer(self, id: QuestionId, given: AnswerQuestion, /) -> Answered:
        """Answer a question"""

    @operation(
        "POST", "/v1/agents/tell", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="to text now request reply_to", waits=True
    )
    def tell_agent(self, letter: NewMessage, /) -> Sent:
        """Send a message to an agent or to the person"""

    @operation("POST", "/v1/agents/broadcast", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="text subtree request")
    def broadcast(self, wanted: Broadcast, /) -> Sent:
        """Send a message to every agent below you; - reads it from stdin"""

    @operation("POST", "/v1/mail", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="agent dead all")
    def mail(self, wanted: ReadMail, /) -> Mail:
        """Read mail; the person's own is marked as read"""

    @operation("POST", "/v1/mail/find", open_to=OpenTo.LOOKS, plain="text thread")
    def find_mail(self, wanted: FindMail, /) -> Mail:
        """Messages with a text in them, or those of one conversation"""

    @operation("POST", "/v1/mail/archive", open_to=OpenTo.ACTS, plain="numbers")
    def archive_mail(self, wanted: ArchiveMail, /) -> wire.projects.Done:
        """Put messages to the person away"""
