"""Notes of projects. A closed one stays as a row."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Row, insert, select, update

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.leader.notes import Note, NoteKind
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.notes.c


def add(tx: Transaction, project: int, kind: NoteKind, text: str, *, author: str, ticket: int | None) -> Note:
    made = Note(
        id=tx.next("note"), project=project, kind=kind, text=text, author=author, ticket=ticket, created_at=tx.now
    )
    tx.execute(insert(schema.notes), [asdict(made)])
    tx.record(EventKind.NOTE_ADDED, project=project, data={"note": made.id, "kind": kind.value, "by": author})
    return made


def close(tx: Transaction, project: int, note: int, *, by: str, outcome: str) -> Note:
    """Raises NotFound for one of another project, StateConflict for one that is closed."""
    row = tx.execute(select(schema.notes).where(_TABLE.id == note, _TABLE.project == project)).one_or_none()
    if row is None:
        raise NotFound(f"There is no note {note} in this project: see `legion note`.")
    found = _note(row)
    if not found.open:
        raise StateConflict(f"Note {note} is closed already: see `legion note --all`.")
    values = {"closed_at": tx.now, "closed_by": by, "outcome": outcome}
    tx.execute(update(schema.notes).where(_TABLE.id == note).values(values))
    tx.record(EventKind.NOTE_CLOSED, project=project, data={"note": note, "kind": found.kind.value, "by": by})
    return replace(found, closed_at=tx.now, closed_by=by, outcome=outcome)


def of_project(tx: ReadTransaction, project: int, *, closed: bool = False) -> tuple[Note, ...]:
    """The open ones, oldest first; with `closed` all of them."""
    mine = select(schema.notes).where(_TABLE.project == project).order_by(_TABLE.id)
    if not closed:
        mine = mine.where(_TABLE.closed_at.is_(None))
    return tuple(_note(row) for row in tx.execute(mine))


def _note(row: Row[Any]) -> Note:
    return Note(**row._mapping)
