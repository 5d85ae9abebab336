"""Memories of projects. One that is forgotten stays as a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, insert, select, update

from legion.domain.errors import NotFound
from legion.domain.memories import Memory
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.memories.c


def add(
    tx: Transaction, project: int, text: str, *, files: Sequence[str], labels: Sequence[str], ticket: int | None
) -> Memory:
    made = Memory(
        id=tx.next("memory"),
        project=project,
        text=text,
        files=tuple(files),
        labels=tuple(labels),
        ticket=ticket,
        created_at=tx.now,
    )
    tx.execute(insert(schema.memories), [asdict(made)])
    return made


def of_project(tx: ReadTransaction, project: int) -> tuple[Memory, ...]:
    """Those that are not forgotten, oldest first."""
    mine = (_TABLE.project == project, _TABLE.forgotten_at.is_(None))
    return tuple(_memory(row) for row in tx.execute(select(schema.memories).where(*mine).order_by(_TABLE.id)))


def forget(tx: Transaction, project: int, memory: int) -> Memory:
    mine = (_TABLE.id == memory, _TABLE.project == project, _TABLE.forgotten_at.is_(None))
    row = tx.execute(select(schema.memories).where(*mine)).one_or_none()
    if row is None:
        raise NotFound(f"There is no memory {memory} in this project: see `legion memories`.")
    tx.execute(update(schema.memories).where(_TABLE.id == memory).values(forgotten_at=tx.now))
    return _memory(row)


def _memory(row: Row[Any]) -> Memory:
    return Memory(**{**row._mapping, "files": tuple(row.files), "labels": tuple(row.labels)})
