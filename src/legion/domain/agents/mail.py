"""Mail between agents and people: stored once, in order, and in the recipient's conversation exactly once.

    waiting -> offered -> heard           delivered: the agent's program echoed it
       |          |
       |          +-> waiting             the run ended, and its transcript does not contain it
       +-> returned                       the recipient was fired first: the sender gets it back

A person's mail is delivered when they read it. A message is offered under the name of one prompt (`batch`), so that
after any crash the transcript shows whether that prompt is in it, and with it every message of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from legion.domain.errors import StateConflict

MOST_UNREAD = 30
"""Messages of one agent that may wait at one recipient."""
LONGEST = 16_000
"""Characters of a message that a prompt contains; of a longer one it has the beginning and a file to read."""
MOST_IN_A_PROMPT = 100_000
PING_PONG = 12
"""So many replies of two agents to each other, with nothing else in between, are a quarrel for a person to end."""
TALK = 4 * PING_PONG
"""So many messages of a pair are checked."""
CALM = 3600.0
"""Seconds of silence after which a pair may start again."""


class MessageKind(Enum):
    """What a message is."""

    TASK = "task"
    """What the agent was hired for."""
    TELL = "tell"
    """Written by an agent or a person."""
    RESULT = "result"
    """The result of an agent's turn, for its parent."""
    RETURNED = "returned"
    """A message of the recipient's own that could not be delivered."""
    NOTICE = "notice"
    """From Legion itself: a report was fired, a limit was reached."""


class Delivery(Enum):
    WAITING = "waiting"
    OFFERED = "offered"
    HEARD = "heard"
    RETURNED = "returned"


@dataclass(frozen=True, kw_only=True)
class Message:
    number: int
    """The order of all mail: messages between two arrive in this order."""
    id: str
    sender: str
    recipient: str
    kind: MessageKind
    text: str
    sent_at: float
    delivery: Delivery = Delivery.WAITING
    batch: str = ""
    """The prompt that it was offered in."""
    heard_at: float | None = None
    about: str = ""
    """The message that this one returns."""
    reply_to: int | None = None
    """The number of the message that this one answers."""
    archived_at: float | None = None
    """When the person put it away; lists leave it out."""

    @property
    def is_open(self) -> bool:
        return self.delivery in (Delivery.WAITING, Delivery.OFFERED)


MOVES = {
    Delivery.WAITING: (Delivery.OFFERED, Delivery.RETURNED, Delivery.HEARD),
    Delivery.OFFERED: (Delivery.HEARD, Delivery.WAITING, Delivery.RETURNED),
    Delivery.HEARD: (),
    Delivery.RETURNED: (),
}


def moved(message: Message, to: Delivery, *, now: float, batch: str = "") -> Message:
    """The message one step later. Raises StateConflict where the step is not legal."""
    if to not in MOVES[message.delivery]:
        raise StateConflict(f"Message {message.number} is {message.delivery.value}, so it cannot become {to.value}.")
    return replace(
        message,
        delivery=to,
        batch=batch if to is Delivery.OFFERED else ("" if to is Delivery.WAITING else message.batch),
        heard_at=now if to is Delivery.HEARD else None,
    )


def next_batch(waiting: Iterable[Message]) -> tuple[Message, ...]:
    """As many of the oldest messages as one prompt holds, at least one: the mailbox is drained in order."""
    batch: list[Message] = []
    length = 0
    for message in sorted(waiting, key=lambda message: message.number):
        length += min(len(message.text), LONGEST)
        if batch and length > MOST_IN_A_PROMPT:
            break
        batch.append(message)
    return tuple(batch)


def quarrels(history: Sequence[Message], now: float) -> bool:
    """Are the last messages of a pair, oldest first, nothing but replies to each other?

    Only changes of the sender count, however many messages each sends at once. After a while of silence the count
    starts again.
    """
    answers, later = 0, None
    for message in reversed(history):
        until = now if later is None else later.sent_at
        if message.kind is not MessageKind.TELL or until - message.sent_at > CALM:
            break
        if later is None or message.sender != later.sender:
            answers += 1
        later = message
    return answers >= PING_PONG
