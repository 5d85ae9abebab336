"""Copies all rows of one database into another, of either kind: SQLite to Postgres, or back."""

from __future__ import annotations

from sqlalchemy import delete, func, insert, select

from legion.domain.errors import StateConflict
from legion.store.database import schema
from legion.store.database.errors import StoreBroken
from legion.store.database.transactions import ReadTransaction, Store, Transaction

_AT_ONCE = 500


def copy_all(source: ReadTransaction, goal: Store) -> int:
    """Bring the goal's tables up to date and fill them; returns how many rows there are. All of it happens or nothing.

    The caller's transaction decides which moment is copied. Raises StateConflict where the goal has a project.
    """
    goal.migrate()
    tables = [name for name in goal.tables_in_order() if name in schema.metadata.tables]
    with goal.write() as tx:
        if tx.execute(select(schema.projects.c.id).limit(1)).first() is not None:
            raise StateConflict(f"The database {goal.place} is not empty: name a new one, nothing was copied.")
        # A migrated database has its counters.
        tx.execute(delete(schema.counters))
        return sum(_copy(source, tx, name) for name in tables)


def _copy(source: ReadTransaction, tx: Transaction, name: str) -> int:
    table = schema.metadata.tables[name]
    found = source.execute(select(table).order_by(*table.primary_key))
    for rows in found.mappings().partitions(_AT_ONCE):
        tx.execute(insert(table), [dict(row) for row in rows])
    (there,) = source.execute(select(func.count()).select_from(table)).one()
    (here,) = tx.execute(select(func.count()).select_from(table)).one()
    if there != here:
        raise StoreBroken(f"The copy of the table {name} has {here} rows of {there}: nothing was copied, try again.")
    return int(here)
