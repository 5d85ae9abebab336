"""Tickets at which a person sits, one row each."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlalchemy import bindparam, delete, insert, or_, select

from legion.domain.tickets.attendance import Attendance, AttendMode
from legion.domain.wheel import WheelStage
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.attendances.c
_OF_TICKET = FixedQuery(
    select(schema.attendances).where(_TABLE.ticket == bindparam("mine")),
    lambda row: Attendance(**vars(row)),
    remember=100,
)

_AT_WORK = FixedQuery(
    select(_TABLE.ticket).where(or_(_TABLE.mode == AttendMode.PERSON, _TABLE.stage == WheelStage.CUT)),
    lambda row: int(row.ticket),
    remember=None,
)


def at_work(tx: ReadTransaction) -> frozenset[int]:
    """The tickets that people work on themselves, or whose agent is interrupted for them."""
    return frozenset(_AT_WORK.all(tx))


def of_ticket(tx: ReadTransaction, ticket: int) -> Attendance | None:
    return _OF_TICKET.first(tx, mine=ticket)


def put(tx: Transaction, wanted: Attendance) -> Attendance:
    """In place of the row of this ticket, if it has one."""
    made = replace(wanted, since=tx.now)
    end(tx, wanted.ticket)
    tx.execute(insert(schema.attendances), [asdict(made)])
    return made


def end(tx: Transaction, ticket: int) -> None:
    tx.execute(delete(schema.attendances).where(_TABLE.ticket == ticket))
