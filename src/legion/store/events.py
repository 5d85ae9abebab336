"""Reads events by number."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import bindparam, select

from legion.domain.events import Event, EventKind
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction


def after(
    tx: ReadTransaction, number: int, *, project: int | None = None, ticket: int | None = None, limit: int = 1000
) -> tuple[Event, ...]:
    """The next events after this number, oldest first. Empty: there are none yet."""
    if project is None and ticket is None:
        return _AFTER.all(tx, seen=number, most=limit)
    table = schema.events.c
    found = select(schema.events).where(table.n > number).order_by(table.n).limit(limit)
    if project is not None:
        found = found.where(table.project == project)
    if ticket is not None:
        found = found.where(table.ticket == ticket)
    return tuple(_event(row) for row in tx.execute(found))


def of_ticket(tx: ReadTransaction, ticket: int, *, limit: int = 1000) -> tuple[Event, ...]:
    """Its latest events, oldest first."""
    return _OF_TICKET.all(tx, mine=ticket, most=limit)[::-1]


def newest(
    tx: ReadTransaction,
    *,
    after: int = 0,
    project: int | None = None,
    ticket: int | None = None,
    limit: int = 1000,
    unassigned: Collection[EventKind] = (),
    kinds: Collection[EventKind] | None = None,
    start: float | None = None,
    end: float | None = None,
) -> tuple[Event, ...]:
    """The latest events after this number, oldest first; for a project also those of no project, by kind.

    `start` is the first moment that counts, `end` the first that does not.
    """
    table = schema.events.c
    found = select(schema.events).where(table.n > after).order_by(table.n.desc()).limit(limit)
    if ticket is not None:
        found = found.where(table.ticket == ticket)
    if kinds is not None:
        found = found.where(table.kind.in_(kinds))
    if start is not None:
        found = found.where(table.at >= start)
    if end is not None:
        found = found.where(table.at < end)
    if project is None:
        return tuple(_event(row) for row in tx.execute(found))[::-1]
    # Two statements: no index serves "this project or none".
    parts = [found.where(table.project == project)]
    if unassigned:
        parts.append(found.where(table.project.is_(None), table.kind.in_(unassigned)))
    both = [_event(row) for part in parts for row in tx.execute(part)]
    return tuple(sorted(both, key=lambda one: one.n)[-limit:])


def latest(tx: ReadTransaction, project: int, kind: EventKind, *, within: int | None = None) -> Event | None:
    """The last event of this kind in a project; `within` limits the search to so many last events."""
    table = schema.events.c
    found = select(schema.events).where(table.project == project, table.kind == kind).order_by(table.n.desc()).limit(1)
    if within is not None:
        found = found.where(table.n > last(tx) - within)
    row = tx.execute(found).one_or_none()
    return None if row is None else _event(row)


def since(tx: ReadTransaction, project: int, kind: EventKind, moment: float) -> tuple[Event, ...]:
    """The events of this kind in a project from a moment on, oldest first."""
    table = schema.events.c
    found: list[Event] = []
    mine = select(schema.events).where(table.project == project, table.kind == kind).order_by(table.n.desc())
    before = last(tx) + 1
    # Backwards, until a whole part is older: a clock that was put back by seconds hides nothing.
    while part := [_event(row) for row in tx.execute(mine.where(table.n < before).limit(_PART))]:
        fresh = [one for one in part if one.at >= moment]
        if not fresh:
            break
        found += fresh
        before = part[-1].n
    return tuple(found[::-1])


def tickets_since(tx: ReadTransaction, project: int, number: int) -> tuple[frozenset[int], frozenset[int]]:
    """The tickets of a project that moved after this event, and those that were created after it."""
    table = schema.events.c
    kinds = (EventKind.TICKET_MOVED, EventKind.TICKET_CREATED)
    found = (
        select(table.ticket, table.kind)
        .where(table.n > number, table.project == project, table.kind.in_(kinds), table.ticket.is_not(None))
        .distinct()
    )
    rows = [(row.kind, row.ticket) for row in tx.execute(found)]
    moved, created = (frozenset(ticket for kind, ticket in rows if kind is one) for one in kinds)
    return moved, created


def concerned(tx: ReadTransaction, number: int) -> frozenset[int | None]:
    """The projects of the events after this number; None where one names none."""
    return frozenset(_CONCERNED.all(tx, seen=number))


def last(tx: ReadTransaction) -> int:
    """The number of the latest event; 0 before the first."""
    return _LAST.all(tx)[0]


def _event(row: Stored) -> Event:
    return Event(n=row.n, at=row.at, kind=row.kind, project=row.project, ticket=row.ticket, data=row.data)


_TABLE = schema.events.c
_PART = 200
_MOST = bindparam("most", type_=_TABLE.n.type)
_AFTER = FixedQuery(
    select(schema.events).where(_TABLE.n > bindparam("seen")).order_by(_TABLE.n).limit(_MOST), _event, remember=500
)
_OF_TICKET = FixedQuery(
    select(schema.events).where(_TABLE.ticket == bindparam("mine")).order_by(_TABLE.n.desc()).limit(_MOST),
    _event,
    remember=500,
)
_CONCERNED: FixedQuery[int | None] = FixedQuery(
    select(_TABLE.project).where(_TABLE.n > bindparam("seen")).distinct(), lambda row: row.project, remember=50
)
_LAST = FixedQuery(
    select(schema.counters.c.value).where(schema.counters.c.name == "event"), lambda row: int(row.value), remember=10
)
