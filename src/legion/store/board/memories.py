"""Memories of projects. One that is forgotten stays as a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from sqlalchemy import bindparam, insert, select, update

from legion.domain.errors import NotFound
from legion.domain.events import EventKind
from legion.domain.memories import Memory
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.memories.c


def add(
    tx: Transaction,
    project: int,
    text: str,
    *,
    files: Sequence[str],
    labels: Sequence[str],
    ticket: int | None,
    lesson: bool = False,
) -> Memory:
    made = Memory(
        id=tx.next("memory"),
        project=project,
        text=text,
        files=tuple(files),
        labels=tuple(labels),
        ticket=ticket,
        created_at=tx.now,
        lesson=lesson,
    )
    tx.execute(insert(schema.memories), [asdict(made)])
    return made


def propose(
    tx: Transaction, project: int, text: str, *, files: Sequence[str], labels: Sequence[str], ticket: int
) -> Memory:
    """A lesson that no briefing carries until it is accepted."""
    made = add(tx, project, text, files=files, labels=labels, ticket=ticket, lesson=True)
    tx.record(EventKind.LESSON_PROPOSED, project=project, ticket=ticket, data={"lesson": made.id, "text": text})
    return made


def accept(tx: Transaction, project: int, lesson: int, *, by: str) -> Memory:
    """Raises NotFound for one that is not proposed."""
    found = next((one for one in lessons(tx, project) if one.id == lesson and one.proposed), None)
    if found is None:
        raise NotFound(f"No lesson {lesson} is proposed in this project: see `legion note lessons`.")
    tx.execute(update(schema.memories).where(_TABLE.id == lesson).values(accepted_at=tx.now, accepted_by=by))
    tx.record(EventKind.LESSON_ACCEPTED, project=project, ticket=found.ticket, data={"lesson": lesson, "by": by})
    return replace(found, accepted_at=tx.now, accepted_by=by)


def lessons(tx: ReadTransaction, project: int) -> tuple[Memory, ...]:
    """Proposed and accepted ones, oldest first."""
    return tuple(one for one in of_project(tx, project) if one.lesson)


def taught(tx: ReadTransaction, tickets: Iterable[int]) -> frozenset[int]:
    """Those of the tickets that proposed a lesson already, forgotten ones included."""
    found = select(_TABLE.ticket).where(_TABLE.lesson == True, _TABLE.ticket.in_(list(tickets)))  # noqa: E712 - SQL
    return frozenset(tx.execute(found).scalars())


def recall(tx: Transaction, ticket: int, carried: Iterable[Memory]) -> None:
    """Record which lessons the briefing of a ticket carries; each once."""
    table = schema.recalled.c
    known = set(tx.execute(select(table.memory).where(table.ticket == ticket)).scalars())
    for one in carried:
        if one.lesson and one.id not in known:
            tx.execute(insert(schema.recalled), [{"memory": one.id, "ticket": ticket, "at": tx.now}])


def carriers(tx: ReadTransaction, memory: int) -> frozenset[int]:
    """The tickets whose briefing carried it."""
    table = schema.recalled.c
    return frozenset(tx.execute(select(table.ticket).where(table.memory == memory)).scalars())


def of_project(tx: ReadTransaction, project: int) -> tuple[Memory, ...]:
    """Those that are not forgotten, oldest first."""
    return _OF_PROJECT.all(tx, mine=project)


def forget(tx: Transaction, project: int, memory: int) -> Memory:
    found = next((one for one in of_project(tx, project) if one.id == memory), None)
    if found is None:
        raise NotFound(f"There is no memory {memory} in this project: see `legion note memories`.")
    tx.execute(update(schema.memories).where(_TABLE.id == memory).values(forgotten_at=tx.now))
    return replace(found, forgotten_at=tx.now)


def _memory(row: Stored) -> Memory:
    return Memory(**{**vars(row), "files": tuple(row.files), "labels": tuple(row.labels)})


_OF_PROJECT = FixedQuery(
    select(schema.memories)
    .where(_TABLE.project == bindparam("mine"), _TABLE.forgotten_at.is_(None))
    .order_by(_TABLE.id),
    _memory,
    remember=500,
)
