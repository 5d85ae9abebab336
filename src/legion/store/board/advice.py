"""Advice on tickets. One per role and turn: the first, and the one for fresh eyes."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlalchemy import bindparam, insert, select

from legion.domain.agents.teams import Advice
from legion.domain.events import EventKind
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.advice.c
_OF_TICKET = FixedQuery(
    select(schema.advice).where(_TABLE.ticket == bindparam("mine")).order_by(_TABLE.run),
    lambda row: Advice(**vars(row)),
    remember=50,
)


def give(tx: Transaction, project: int, advice: Advice) -> None:
    tx.execute(insert(schema.advice), [asdict(replace(advice, given_at=tx.now))])
    data = {"role": advice.role, "run": advice.run, "turn": advice.turn}
    tx.record(EventKind.TICKET_ADVISED, project=project, ticket=advice.ticket, data=data)


def of_ticket(tx: ReadTransaction, ticket: int) -> tuple[Advice, ...]:
    """In the order in which it was given."""
    return _OF_TICKET.all(tx, mine=ticket)
