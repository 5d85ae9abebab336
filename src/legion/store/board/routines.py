"""Routines of projects. A removed one stays as a row."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Row, insert, select, update

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.routines import Routine
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.routines.c


def add(tx: Transaction, routine: Routine) -> Routine:
    made = replace(routine, id=tx.next("routine"), version=1, created_at=tx.now)
    tx.execute(insert(schema.routines), [_values(made)])
    tx.record(EventKind.ROUTINE_ADDED, project=made.project, data={"routine": made.id, "starts": made.starts})
    return made


def save(tx: Transaction, before: Routine, after: Routine) -> Routine:
    """Raises StateConflict where it changed since `before` was read: of two starts only one counts."""
    moved = replace(after, version=before.version + 1)
    same = (_TABLE.id == before.id, _TABLE.version == before.version)
    if tx.execute(update(schema.routines).where(*same).values(_values(moved))).rowcount == 0:
        raise StateConflict(f"Routine {before.id} changed meanwhile: see `legion plan routine list`.")
    return moved


def remove(tx: Transaction, project: int, routine: int) -> Routine:
    found = get(tx, project, routine)
    tx.record(EventKind.ROUTINE_REMOVED, project=project, data={"routine": routine})
    return save(tx, found, replace(found, removed_at=tx.now))


def get(tx: ReadTransaction, project: int, routine: int) -> Routine:
    found = next((one for one in of_project(tx, project) if one.id == routine), None)
    if found is None:
        raise NotFound(f"There is no routine {routine} in this project: see `legion plan routine list`.")
    return found


def of_project(tx: ReadTransaction, project: int) -> tuple[Routine, ...]:
    return tuple(one for one in standing(tx) if one.project == project)


def standing(tx: ReadTransaction) -> tuple[Routine, ...]:
    """Of all projects, oldest first."""
    found = select(schema.routines).where(_TABLE.removed_at.is_(None)).order_by(_TABLE.id)
    return tuple(_routine(row) for row in tx.execute(found))


def _values(routine: Routine) -> dict[str, Any]:
    lists = {"tags": list(routine.tags), "last_tickets": list(routine.last_tickets)}
    return {**asdict(routine), **lists, "variables": dict(routine.variables)}


def _routine(row: Row[Any]) -> Routine:
    return Routine(**{**row._mapping, "tags": tuple(row.tags), "last_tickets": tuple(row.last_tickets)})
