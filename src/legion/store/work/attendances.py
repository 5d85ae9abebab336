"""Tickets at which a person sits, one row each."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlalchemy import delete, insert, select

from legion.domain.tickets.attendance import Attendance, AttendMode
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.attendances.c


def of_ticket(tx: ReadTransaction, ticket: int) -> Attendance | None:
    row = tx.execute(select(schema.attendances).where(_TABLE.ticket == ticket)).one_or_none()
    return None if row is None else Attendance(**row._mapping)


def all_of_mode(tx: ReadTransaction, mode: AttendMode) -> frozenset[int]:
    return frozenset(tx.execute(select(_TABLE.ticket).where(_TABLE.mode == mode)).scalars())


def put(tx: Transaction, wanted: Attendance) -> Attendance:
    """In place of the row of this ticket, if it has one."""
    made = replace(wanted, since=tx.now)
    end(tx, wanted.ticket)
    tx.execute(insert(schema.attendances), [asdict(made)])
    return made


def end(tx: Transaction, ticket: int) -> None:
    tx.execute(delete(schema.attendances).where(_TABLE.ticket == ticket))
