"""Conditions of draft tickets: on the results of which tickets each of them waits."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select, update

from legion.domain.plans.conditions import StepResult
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.ticket_details.c
_FIELDS = ("about", "result", "word", "negated")


@dataclass(frozen=True, kw_only=True)
class WaitingTicket:
    ticket: int
    about: tuple[int, ...]
    result: StepResult
    word: str = ""
    negated: bool = False


def add(tx: Transaction, waiting: WaitingTicket) -> None:
    values = {**vars(waiting), "about": list(waiting.about)}
    _write(tx, waiting.ticket, {f"condition_{name}": values[name] for name in _FIELDS})


def all(tx: ReadTransaction) -> tuple[WaitingTicket, ...]:
    """Of every project, in the order of their tickets."""
    columns = (_TABLE[f"condition_{name}"].label(name) for name in _FIELDS)
    waiting = select(_TABLE.ticket, *columns).where(_TABLE.condition_result.is_not(None)).order_by(_TABLE.ticket)
    return tuple(WaitingTicket(**{**row._mapping, "about": tuple(row.about)}) for row in tx.execute(waiting))


def remove(tx: Transaction, ticket: int) -> None:
    """It is decided."""
    _write(tx, ticket, {f"condition_{name}": None for name in _FIELDS})


def _write(tx: Transaction, ticket: int, values: dict[str, object]) -> None:
    tx.execute(update(schema.ticket_details).where(_TABLE.ticket == ticket).values(values))
