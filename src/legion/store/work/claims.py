"""Claims on jobs: at most one active per kind and subject, and an outdated one can neither finish nor write."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import ColumnElement, func, insert, literal_column, select, update

from legion.domain.errors import StateConflict
from legion.domain.scheduling.decide import Claim, JobKind
from legion.store.database import schema
from legion.store.database.errors import StaleClaim
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.claims.c
_ACTIVE = _TABLE.active == literal_column("1")
"""Spelt as in the partial index: a bound value would hide the index from the planner."""
_ALL_ACTIVE = select(schema.claims).where(_ACTIVE).order_by(_TABLE.id)


def claim(tx: Transaction, kind: JobKind, subject: int, machine: str, until: float | None = None) -> Claim:
    """Take the job, as the next generation. Raises StateConflict while it is claimed."""
    same = (_TABLE.kind == kind, _TABLE.subject == subject)
    if tx.execute(select(_TABLE.id).where(*same, _ACTIVE)).one_or_none() is not None:
        raise StateConflict(f"The job {kind.value} {subject} is running already: wait for its end.")
    last: int = tx.execute(select(func.coalesce(func.max(_TABLE.generation), 0)).where(*same)).scalar_one()
    claim = Claim(
        id=tx.next("claim"),
        kind=kind,
        subject=subject,
        generation=last + 1,
        machine=machine,
        until=until,
        active=True,
    )
    tx.execute(insert(schema.claims), [asdict(claim) | {"claimed_at": tx.now}])
    return claim


def still_mine(tx: ReadTransaction, claim: Claim) -> bool:
    """May this generation still write? Call it in the transaction that writes."""
    return tx.execute(select(_TABLE.id).where(*_this(claim))).one_or_none() is not None


def finish(tx: Transaction, claim: Claim) -> None:
    """Release the job and notify listeners: something may start now. Raises StaleClaim when it is no longer ours."""
    values = {"active": False, "finished_at": tx.now}
    if tx.execute(update(schema.claims).where(*_this(claim)).values(values)).rowcount != 1:
        raise StaleClaim(
            f"The job {claim.kind.value} {claim.subject} is no longer generation {claim.generation}'s: leave it alone."
        )
    tx.tell()


def active(tx: ReadTransaction) -> tuple[Claim, ...]:
    """Active claims, oldest first."""
    return _LIST_ACTIVE.all(tx)


def _this(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return (_TABLE.id == claim.id, _TABLE.generation == claim.generation, _ACTIVE)


def _claim(row: Stored) -> Claim:
    return Claim(
        id=row.id,
        kind=row.kind,
        subject=row.subject,
        generation=row.generation,
        machine=row.machine,
        until=row.until,
        active=row.active,
    )


_LIST_ACTIVE = FixedQuery(_ALL_ACTIVE, _claim, remember=500)
