"""Adoptions: which ticket continues which conversation of the person's."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from sqlalchemy import bindparam, select, update

from legion.domain.events import EventKind
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction


@dataclass(frozen=True, kw_only=True)
class Adoption:
    ticket: int
    at: float
    conversation: str
    """The ticket's own, which starts as a copy."""
    source: str
    """The person's."""


_TABLE = schema.ticket_details.c
_ALL = select(
    _TABLE.ticket,
    _TABLE.adopted_at.label("at"),
    _TABLE.adopted_conversation.label("conversation"),
    _TABLE.adopted_source.label("source"),
).where(_TABLE.adopted_conversation.is_not(None))
_OF_TICKET = FixedQuery(_ALL.where(_TABLE.ticket == bindparam("mine")), lambda row: Adoption(**vars(row)), remember=100)
_BY_CONVERSATION = FixedQuery(
    _ALL.where(_TABLE.adopted_conversation == bindparam("asked")), lambda row: Adoption(**vars(row)), remember=100
)


def add(tx: Transaction, *, ticket: int, project: int, source: str) -> None:
    """The first run of the ticket starts its conversation as a copy of `source`."""
    values = {"adopted_at": tx.now, "adopted_conversation": str(uuid.uuid4()), "adopted_source": source}
    tx.execute(update(schema.ticket_details).where(_TABLE.ticket == ticket).values(values))
    tx.record(EventKind.TICKET_ADOPTED, project=project, ticket=ticket, data={"source": source})


def of_ticket(tx: ReadTransaction, ticket: int) -> Adoption | None:
    return _OF_TICKET.first(tx, mine=ticket)


def by_conversation(tx: ReadTransaction, conversation: str) -> Adoption | None:
    return _BY_CONVERSATION.first(tx, asked=conversation)


def latest_of(tx: ReadTransaction, source: str) -> Adoption | None:
    """The last ticket that continues this conversation of the person's."""
    found = _ALL.where(_TABLE.adopted_source == source).order_by(_TABLE.ticket.desc()).limit(1)
    row = tx.execute(found).one_or_none()
    return None if row is None else Adoption(**row._mapping)
