"""Shapes of the conversation between the person and a leader."""

from __future__ import annotations

from dataclasses import field

from legion.wire.agents import AgentLine
from legion.wire.lazy import dataclass
from legion.wire.mail import MessageLine


@dataclass(kw_only=True)
class ReadConversation:
    cwd: str
    name: str = ""
    """A leader's name or id; empty: the first leader of the project, else the first agent that the person hired."""
    last: int = 50
    """How many messages."""


@dataclass(kw_only=True)
class Conversation:
    schema: str = "legion.conversation/1"
    leader: AgentLine | None
    """Null where the project has no leader; `hint` then says how to hire one."""
    messages: list[MessageLine]
    """Between the person and the leader, oldest first. Reading them marks them as read."""
    tokens: int = 0
    """The size of the leader's conversation with its model after the last turn; 0 where that is not known."""
    handover_tokens: int = 0
    """At this size it continues in a fresh conversation."""
    handovers: int = 0
    """How often it did."""
    approves: bool = False
    """It may approve plans in the person's place."""
    answers: bool = False
    """It may answer questions of agents."""
    hint: str = ""
    notes: list[str] = field(default_factory=list)
    """Open notes, each as a line."""


@dataclass(kw_only=True)
class ChatReply:
    """What `legion tell chat -m` prints with --json."""

    schema: str = "legion.chat/1"
    leader: str
    """Its name."""
    message: str
    """The id of the message that was sent."""
    replies: list[MessageLine]
    """What the leader answered in that turn; empty where it had nothing to say."""
