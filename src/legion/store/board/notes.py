"""Notes of projects, of every kind. A closed one stays as a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from types import SimpleNamespace

from sqlalchemy import bindparam, insert, or_, select, update

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.notes import FOR_AGENTS, FOR_LEADERS, Note, NoteKind
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.notes.c
_USES = schema.note_uses.c


def add(
    tx: Transaction,
    project: int,
    kind: NoteKind,
    text: str,
    *,
    author: str = "",
    ticket: int | None = None,
    files: Sequence[str] = (),
    labels: Sequence[str] = (),
    pinned: bool = False,
) -> Note:
    made = Note(
        id=tx.next("note"),
        project=project,
        kind=kind,
        text=text,
        author=author,
        ticket=ticket,
        created_at=tx.now,
        files=tuple(files),
        labels=tuple(labels),
        pinned=pinned,
    )
    tx.execute(insert(schema.notes), [asdict(made)])
    if kind in FOR_LEADERS:
        tx.record(EventKind.NOTE_ADDED, project=project, data={"note": made.id, "kind": kind.value, "by": author})
    return made


def propose(
    tx: Transaction, project: int, text: str, *, files: Sequence[str], labels: Sequence[str], ticket: int
) -> Note:
    """A lesson that no briefing carries until it is accepted."""
    made = add(tx, project, NoteKind.LESSON, text, files=files, labels=labels, ticket=ticket)
    tx.record(EventKind.LESSON_PROPOSED, project=project, ticket=ticket, data={"lesson": made.id, "text": text})
    return made


def accept(tx: Transaction, project: int, lesson: int, *, by: str) -> Note:
    """Raises NotFound for one that is not proposed."""
    found = next((one for one in lessons(tx, project) if one.id == lesson and one.proposed), None)
    if found is None:
        raise NotFound(f"No lesson {lesson} is proposed in this project: see `legion note lessons`.")
    tx.execute(update(schema.notes).where(_TABLE.id == lesson).values(accepted_at=tx.now, accepted_by=by))
    tx.record(EventKind.LESSON_ACCEPTED, project=project, ticket=found.ticket, data={"lesson": lesson, "by": by})
    return replace(found, accepted_at=tx.now, accepted_by=by)


def close(tx: Transaction, project: int, note: int, *, by: str, outcome: str = "") -> Note:
    """Raises NotFound for one of another project, StateConflict for one that is closed."""
    found = get(tx, project, note)
    if not found.open:
        raise StateConflict(f"Note {note} is closed already: see `legion note --all`.")
    values = {"closed_at": tx.now, "closed_by": by, "outcome": outcome}
    tx.execute(update(schema.notes).where(_TABLE.id == note).values(values))
    if found.kind in FOR_LEADERS:
        tx.record(EventKind.NOTE_CLOSED, project=project, data={"note": note, "kind": found.kind.value, "by": by})
    return replace(found, closed_at=tx.now, closed_by=by, outcome=outcome)


def get(tx: ReadTransaction, project: int, note: int) -> Note:
    row = tx.execute(select(schema.notes).where(_TABLE.id == note, _TABLE.project == project)).one_or_none()
    if row is None:
        raise NotFound(f"There is no note {note} in this project: see `legion note`.")
    return _note(row)


def for_leaders(tx: ReadTransaction, project: int, *, closed: bool = False) -> tuple[Note, ...]:
    """Open decisions, promises and threads, oldest first; with `closed` all of them."""
    mine = select(schema.notes).where(_TABLE.project == project, _TABLE.kind.in_(FOR_LEADERS)).order_by(_TABLE.id)
    if not closed:
        mine = mine.where(_TABLE.closed_at.is_(None))
    return tuple(_note(row) for row in tx.execute(mine))


def for_agents(tx: ReadTransaction, project: int) -> tuple[Note, ...]:
    """Open memories and lessons, oldest first."""
    return _FOR_AGENTS.all(tx, mine=project)


def lessons(tx: ReadTransaction, project: int) -> tuple[Note, ...]:
    """Proposed and accepted ones, oldest first."""
    return tuple(one for one in for_agents(tx, project) if one.is_lesson)


def taught(tx: ReadTransaction, tickets: Iterable[int]) -> frozenset[int]:
    """Those of the tickets that proposed a lesson already, closed ones included."""
    found = select(_TABLE.ticket).where(_TABLE.kind == NoteKind.LESSON, _TABLE.ticket.in_(list(tickets)))
    return frozenset(tx.execute(found).scalars())


def record_uses(tx: Transaction, ticket: int, carried: Iterable[Note]) -> None:
    """Record which lessons the briefing of a ticket carries; each once."""
    known = set(tx.execute(select(_USES.note).where(_USES.ticket == ticket)).scalars())
    for one in carried:
        if one.is_lesson and one.id not in known:
            tx.execute(insert(schema.note_uses), [{"note": one.id, "ticket": ticket, "at": tx.now}])


def users(tx: ReadTransaction, note: int) -> frozenset[int]:
    """The tickets whose briefing carried it."""
    return frozenset(tx.execute(select(_USES.ticket).where(_USES.note == note)).scalars())


def _note(row: Stored) -> Note:
    facts = vars(row) if isinstance(row, SimpleNamespace) else row._mapping
    return Note(**{**facts, "files": tuple(row.files), "labels": tuple(row.labels)})


_FOR_AGENTS = FixedQuery(
    select(schema.notes)
    .where(
        _TABLE.project == bindparam("mine"),
        _TABLE.closed_at.is_(None),
        or_(*(_TABLE.kind == kind for kind in FOR_AGENTS)),
    )
    .order_by(_TABLE.id),
    _note,
    remember=500,
)
