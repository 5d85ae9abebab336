"""Budgets of epics that have one of their own."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.epics.c
_ALL = FixedQuery(select(schema.epics), lambda row: ((row.project, row.name), row.budget), remember=100)


def budgets(tx: ReadTransaction) -> dict[tuple[int, str], float]:
    """Dollars by project and name."""
    return dict(_ALL.all(tx))


def set_budget(tx: Transaction, project: int, name: str, usd: float | None) -> None:
    """None: the epic has the limit of the settings again."""
    tx.execute(delete(schema.epics).where(_TABLE.project == project, _TABLE.name == name))
    if usd is not None:
        tx.execute(insert(schema.epics), [{"project": project, "name": name, "budget": usd}])
    # Tickets may be able to start now.
    tx.tell()
