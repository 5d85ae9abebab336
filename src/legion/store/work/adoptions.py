"""Adoptions: which ticket continues which conversation of the person's."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from typing import Any

from sqlalchemy import Select, bindparam, insert, select

from legion.domain.events import EventKind
from legion.domain.tickets.adoptions import Adoption
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.adoptions.c
_OF_TICKET = FixedQuery(
    select(schema.adoptions).where(_TABLE.ticket == bindparam("mine")), lambda row: Adoption(**vars(row)), remember=100
)


def add(tx: Transaction, *, ticket: int, project: int, source: str) -> None:
    """The first run of the ticket starts its conversation as a copy of `source`."""
    adoption = Adoption(ticket=ticket, at=tx.now, conversation=str(uuid.uuid4()), source=source)
    tx.execute(insert(schema.adoptions), [asdict(adoption)])
    tx.record(EventKind.TICKET_ADOPTED, project=project, ticket=ticket, data={"source": source})


def of_ticket(tx: ReadTransaction, ticket: int) -> Adoption | None:
    return _OF_TICKET.first(tx, mine=ticket)


def by_conversation(tx: ReadTransaction, conversation: str) -> Adoption | None:
    return _one(tx, select(schema.adoptions).where(_TABLE.conversation == conversation))


def latest_of(tx: ReadTransaction, source: str) -> Adoption | None:
    """The last ticket that continues this conversation of the person's."""
    found = select(schema.adoptions).where(_TABLE.source == source)
    return _one(tx, found.order_by(_TABLE.ticket.desc()).limit(1))


def _one(tx: ReadTransaction, found: Select[Any]) -> Adoption | None:
    row = tx.execute(found).one_or_none()
    return None if row is None else Adoption(**row._mapping)
