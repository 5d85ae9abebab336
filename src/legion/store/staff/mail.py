"""Mail: every message is written once, and moves by the rules of `legion.domain.agents.mail`."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, insert, literal_column, select, update

from legion.domain.agents import mail
from legion.domain.agents.mail import Delivery, Message, MessageKind
from legion.domain.errors import NotFound
from legion.domain.events import EventKind
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.mail.c
_OPEN: ColumnElement[bool] = literal_column("delivery IN ('waiting', 'offered')")
"""Spelt as in the partial index: bound values would hide the index from the planner."""
_EVENTS = {Delivery.HEARD: EventKind.MAIL_DELIVERED, Delivery.RETURNED: EventKind.MAIL_RETURNED}
_WAITING_SINCE = FixedQuery(
    select(_TABLE.recipient, func.min(_TABLE.sent_at).label("since"))
    .where(_OPEN, _TABLE.delivery == Delivery.WAITING)
    .group_by(_TABLE.recipient),
    lambda row: (str(row.recipient), float(row.since)),
    remember=100,
)
_SEND = insert(schema.mail)
_SHOWN = 200
"""Characters of a message that its event contains."""


def send(
    tx: Transaction,
    *,
    sender: str,
    recipient: str,
    text: str,
    kind: MessageKind = MessageKind.TELL,
    about: str = "",
    project: int | None = None,
    reply_to: int | None = None,
) -> Message:
    message = Message(
        number=tx.next("mail"),
        id=str(uuid.uuid4()),
        sender=sender,
        recipient=recipient,
        kind=kind,
        text=text,
        sent_at=tx.now,
        about=about,
        reply_to=reply_to,
    )
    tx.execute(_SEND, [asdict(message)])
    data = {"message": message.id, "from": sender, "to": recipient, "kind": kind.value, "text": text[:_SHOWN]}
    tx.record(EventKind.MAIL_SENT, project=project, data=data)
    return message


def move(tx: Transaction, message: Message, to: Delivery, *, batch: str = "") -> Message:
    """One step on. Raises StateConflict where the rules forbid it."""
    moved = mail.moved(message, to, now=tx.now, batch=batch)
    values = {"delivery": moved.delivery, "batch": moved.batch, "heard_at": moved.heard_at}
    tx.execute(update(schema.mail).where(_TABLE.number == message.number).values(values))
    if to in _EVENTS:
        data = {"message": message.id, "from": message.sender, "to": message.recipient}
        tx.record(_EVENTS[to], data=data)
    return moved


def offer(tx: Transaction, recipient: str, batch: str) -> tuple[Message, ...]:
    """Drain the mailbox into one prompt, as far as it fits."""
    return tuple(
        move(tx, message, Delivery.OFFERED, batch=batch) for message in mail.next_batch(waiting(tx, recipient))
    )


def offer_now(tx: Transaction, message: Message) -> tuple[Message, ...]:
    """Offer this message in the recipient's present turn, after all that the same sender has waiting: order is kept."""
    before = [one for one in waiting(tx, message.recipient) if one.sender == message.sender]
    return tuple(move(tx, one, Delivery.OFFERED, batch=message.id) for one in before)


def get(tx: ReadTransaction, id: str) -> Message | None:
    row = tx.execute(select(schema.mail).where(_TABLE.id == id)).one_or_none()
    return None if row is None else _message(row)


def waiting(tx: ReadTransaction, recipient: str) -> tuple[Message, ...]:
    return _all(tx, _open_of(recipient).where(_TABLE.delivery == Delivery.WAITING))


def offered(tx: ReadTransaction, recipient: str) -> tuple[Message, ...]:
    return _all(tx, _open_of(recipient).where(_TABLE.delivery == Delivery.OFFERED))


def of_batch(tx: ReadTransaction, recipient: str, batch: str) -> tuple[Message, ...]:
    """The messages of a prompt, delivered by now or not."""
    found = select(schema.mail).where(_TABLE.recipient == recipient, _TABLE.batch == batch).order_by(_TABLE.number)
    return _all(tx, found)


def have_mail(tx: ReadTransaction) -> Mapping[str, int]:
    """How many messages wait, by recipient; recipients without any are left out."""
    found = (
        select(_TABLE.recipient, func.count().label("many"))
        .where(_OPEN, _TABLE.delivery == Delivery.WAITING)
        .group_by(_TABLE.recipient)
    )
    return {row.recipient: row.many for row in tx.execute(found)}


def waiting_since(tx: ReadTransaction) -> Mapping[str, float]:
    """When the oldest waiting message was sent, by recipient; those without any are left out."""
    return dict(_WAITING_SINCE.all(tx))


def about(tx: ReadTransaction, agents: Collection[str], *, limit: int) -> tuple[Message, ...]:
    """The last messages to or from these, oldest first, without archived ones."""
    mine = (_TABLE.recipient.in_(agents) | _TABLE.sender.in_(agents)) & _TABLE.archived_at.is_(None)
    return _all(tx, select(schema.mail).where(mine).order_by(_TABLE.number.desc()).limit(limit))[::-1]


def dead(tx: ReadTransaction, senders: Collection[str] | None, *, limit: int) -> tuple[Message, ...]:
    """Returned messages, oldest first; None: of all senders."""
    found = select(schema.mail).where(_TABLE.delivery == Delivery.RETURNED)
    if senders is not None:
        found = found.where(_TABLE.sender.in_(senders))
    return _all(tx, found.order_by(_TABLE.number.desc()).limit(limit))[::-1]


def between(tx: ReadTransaction, one: str, other: str, *, limit: int) -> tuple[Message, ...]:
    """The last messages of a pair, oldest first."""
    there = (_TABLE.sender == one) & (_TABLE.recipient == other)
    back = (_TABLE.sender == other) & (_TABLE.recipient == one)
    return _all(tx, select(schema.mail).where(there | back).order_by(_TABLE.number.desc()).limit(limit))[::-1]


def numbered(tx: ReadTransaction, number: int) -> Message:
    row = tx.execute(select(schema.mail).where(_TABLE.number == number)).one_or_none()
    if row is None:
        raise NotFound(f"There is no message {number}: see `legion inbox mail --all`.")
    return _message(row)


def with_text(tx: ReadTransaction, text: str, *, limit: int) -> tuple[Message, ...]:
    """The last messages that contain this text, in any case, oldest first."""
    found = select(schema.mail).where(func.lower(_TABLE.text).contains(text.lower(), autoescape=True))
    return _all(tx, found.order_by(_TABLE.number.desc()).limit(limit))[::-1]


def archive(tx: Transaction, recipient: str, numbers: Collection[int] = ()) -> int:
    """Put away what this recipient has read; returns how many messages. Without numbers: all of them."""
    mine = (_TABLE.recipient == recipient, _TABLE.archived_at.is_(None), _TABLE.delivery == Delivery.HEARD)
    change = update(schema.mail).where(*mine)
    if numbers:
        change = change.where(_TABLE.number.in_(numbers))
    return int(tx.execute(change.values(archived_at=tx.now)).rowcount)


def read(tx: Transaction, messages: Iterable[Message]) -> None:
    """The person has read them."""
    for message in messages:
        if message.delivery is Delivery.WAITING:
            move(tx, message, Delivery.HEARD)


def _open_of(recipient: str) -> Select[Any]:
    return select(schema.mail).where(_TABLE.recipient == recipient, _OPEN).order_by(_TABLE.number)


def _all(tx: ReadTransaction, found: Select[Any]) -> tuple[Message, ...]:
    return tuple(_message(row) for row in tx.execute(found))


def _message(row: Row[Any]) -> Message:
    return Message(**row._mapping)
