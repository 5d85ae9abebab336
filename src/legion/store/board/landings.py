"""Landings: the intent is written before the target moves, the outcome after, so a crash in between is visible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from legion.domain.errors import StateConflict
from legion.domain.landing.queue import LandingIntent
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.landings.c


def open(
    tx: Transaction,
    project: int,
    *,
    base: str,
    commit: str,
    tree: str,
    tickets: Mapping[int, str],
    before: Mapping[int, str] | None = None,
    since: Mapping[int, float] | None = None,
) -> LandingIntent:
    """Record that the target is about to move from `base` to `commit`."""
    stood_on, came = before or {}, since or {}
    row: dict[str, Any] = {
        "id": tx.next("landing"),
        "project": project,
        "base": base,
        "commit_id": commit,
        "tree": tree,
        "tickets": [(ticket, landed, stood_on.get(ticket), came.get(ticket)) for ticket, landed in tickets.items()],
        "opened_at": tx.now,
    }
    tx.execute(insert(schema.landings), [row])
    return _one(tx, row["id"])


def close(tx: Transaction, landing: int, *, landed: bool) -> LandingIntent:
    """Record whether the target moved, once. The event is written with the moves of project and tickets."""
    mine = update(schema.landings).where(_TABLE.id == landing, _TABLE.closed_at.is_(None))
    if tx.execute(mine.values(closed_at=tx.now, landed=landed)).rowcount != 1:
        raise StateConflict(f"Landing {landing} is not open: look at it again.")
    return _one(tx, landing)


def open_ones(tx: ReadTransaction, project: int) -> tuple[LandingIntent, ...]:
    """Landings with unknown outcome, oldest first."""
    return _OPEN.all(tx, wanted=project)


def begun(tx: ReadTransaction) -> frozenset[int]:
    """The projects with a landing of unknown outcome."""
    return frozenset(_BEGUN.all(tx))


def history(tx: ReadTransaction, project: int, limit: int) -> tuple[LandingIntent, ...]:
    """Newest first."""
    return _HISTORY.all(tx, wanted=project, most=limit)


def _one(tx: ReadTransaction, landing: int) -> LandingIntent:
    return _landing(tx.execute(select(schema.landings).where(_TABLE.id == landing)).one())


def _landing(row: Stored) -> LandingIntent:
    return LandingIntent(
        id=row.id,
        project=row.project,
        base=row.base,
        commit=row.commit_id,
        tree=row.tree,
        tickets={ticket: landed for ticket, landed, *_ in row.tickets},
        # Landings of earlier releases have neither.
        before={ticket: more[0] for ticket, _, *more in row.tickets if more and more[0]},
        since={ticket: more[1] for ticket, _, *more in row.tickets if len(more) > 1 and more[1] is not None},
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        landed=row.landed,
    )


_OF_PROJECT = select(schema.landings).where(_TABLE.project == bindparam("wanted"))
_OPEN = FixedQuery(_OF_PROJECT.where(_TABLE.closed_at.is_(None)).order_by(_TABLE.id), _landing, remember=50)
_BEGUN = FixedQuery(select(_TABLE.project).where(_TABLE.closed_at.is_(None)), lambda row: int(row.project), remember=50)
_HISTORY = FixedQuery(
    _OF_PROJECT.order_by(_TABLE.id.desc()).limit(bindparam("most", type_=_TABLE.id.type)), _landing, remember=200
)
