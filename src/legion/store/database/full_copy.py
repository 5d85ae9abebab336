"""Whole databases: recognizes one of legion_cc, and copies all rows of one into another of either kind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

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


_THEIRS = {"squad_sessions", "pane_configs"}
_OURS = "schema_version"


def is_foreign(file: Path) -> bool:
    """Reads only, and makes no file next to it. What is new may still be in its write-ahead log alone."""
    if not file.is_file():
        return False
    more = "" if file.with_name(f"{file.name}-wal").exists() else "&immutable=1"
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro{more}", uri=True)) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return False
    return bool(tables & _THEIRS) and _OURS not in tables
