"""Conditions of draft tickets: on the results of which tickets each of them waits."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from legion.domain.plans.conditions import StepResult
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.conditions.c


@dataclass(frozen=True, kw_only=True)
class WaitingTicket:
    ticket: int
    about: tuple[int, ...]
    result: StepResult
    word: str = ""
    negated: bool = False


def add(tx: Transaction, waiting: WaitingTicket) -> None:
    tx.execute(insert(schema.conditions), [{**vars(waiting), "about": list(waiting.about)}])


def all(tx: ReadTransaction) -> tuple[WaitingTicket, ...]:
    """Of every project, in the order of their tickets."""
    found = tx.execute(select(schema.conditions).order_by(_TABLE.ticket))
    return tuple(WaitingTicket(**{**row._mapping, "about": tuple(row.about)}) for row in found)


def remove(tx: Transaction, ticket: int) -> None:
    """It is decided."""
    tx.execute(delete(schema.conditions).where(_TABLE.ticket == ticket))
