"""Budgets and gates of epics that have one of their own."""

from __future__ import annotations

from sqlalchemy import insert, select, update

from legion.domain.tickets.spec import LandingGate
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.epics.c
_ALL = FixedQuery(select(schema.epics), lambda row: row, remember=None)


def names(tx: ReadTransaction, project: int) -> tuple[str, ...]:
    """Of the epics that tickets of a project belong to."""
    table = schema.tickets.c
    found = select(table.epic).where(table.project == project, table.epic != "", table.dropped_at.is_(None)).distinct()
    return tuple(tx.execute(found.order_by(table.epic)).scalars())


def budgets(tx: ReadTransaction) -> dict[tuple[int, str], float]:
    """Dollars by project and name."""
    return {(row.project, row.name): row.budget for row in _ALL.all(tx) if row.budget is not None}


def set_budget(tx: Transaction, project: int, name: str, usd: float | None) -> None:
    """None: the epic has the limit of the settings again."""
    _set(tx, project, name, {"budget": usd})


def gates(tx: ReadTransaction) -> dict[tuple[int, str], LandingGate]:
    """By project and name."""
    return {(row.project, row.name): row.gate for row in _ALL.all(tx) if row.gate is not None}


def set_gate(tx: Transaction, project: int, name: str, gate: LandingGate | None) -> None:
    """None: the project's gate is in force again."""
    _set(tx, project, name, {"gate": gate})


def _set(tx: Transaction, project: int, name: str, values: dict[str, object]) -> None:
    same = update(schema.epics).where(_TABLE.project == project, _TABLE.name == name)
    if tx.execute(same.values(values)).rowcount == 0:
        tx.execute(insert(schema.epics), [{"project": project, "name": name, "budget": None, "gate": None} | values])
    # Tickets may be able to start now.
    tx.tell()
