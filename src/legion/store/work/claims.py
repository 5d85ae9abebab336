"""Claims on jobs: at most one active per kind and subject, and an outdated one can neither finish nor write."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import bindparam, func, literal_column, select

from legion.domain.errors import StateConflict
from legion.domain.scheduling.decide import Claim, JobKind
from legion.store.database import schema
from legion.store.database.errors import StaleClaim
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.prepared import inserting, new, updating
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.claims.c
_ACTIVE = _TABLE.active == literal_column("1")
"""Spelt as in the partial index: a bound value would hide the index from the planner."""
_ALL_ACTIVE = select(schema.claims).where(_ACTIVE).order_by(_TABLE.id)


def claim(
    tx: Transaction, kind: JobKind, subject: int, machine: str, until: float | None = None, *, why: str = ""
) -> Claim:
    """Take the job, as the next generation. Raises StateConflict while it is claimed."""
    if _CLAIMED.first(tx, of_kind=kind, of_subject=subject) is not None:
        raise StateConflict(f"The job {kind.value} {subject} is running already: wait for its end.")
    (last,) = _LAST_GENERATION.all(tx, of_kind=kind, of_subject=subject)
    claim = Claim(
        id=tx.next("claim"),
        kind=kind,
        subject=subject,
        generation=last + 1,
        machine=machine,
        until=until,
        active=True,
        why=why,
    )
    tx.run(_INSERT, asdict(claim) | {"claimed_at": tx.now})
    return claim


def still_mine(tx: ReadTransaction, claim: Claim) -> bool:
    """May this generation still write? Call it in the transaction that writes."""
    return _STILL_ACTIVE.first(tx, this=claim.id, mine=claim.generation) is not None


def finish(tx: Transaction, claim: Claim) -> None:
    """Release the job and notify listeners: something may start now. Raises StaleClaim when it is no longer ours."""
    values = {"active": False, "finished_at": tx.now}
    if tx.run(_FINISH, {"this": claim.id, "mine": claim.generation, **new(values)}) != 1:
        raise StaleClaim(
            f"The job {claim.kind.value} {claim.subject} is no longer generation {claim.generation}'s: leave it alone."
        )
    tx.tell()


def active(tx: ReadTransaction) -> tuple[Claim, ...]:
    """Active claims, oldest first."""
    return _LIST_ACTIVE.all(tx)


def latest(tx: ReadTransaction, kind: JobKind, subject: int) -> Claim | None:
    """The last start of this job, running or ended."""
    return _LATEST.first(tx, of_kind=kind, of_subject=subject)


def _claim(row: Stored) -> Claim:
    return Claim(
        id=row.id,
        kind=row.kind,
        subject=row.subject,
        generation=row.generation,
        machine=row.machine,
        until=row.until,
        active=row.active,
        why=row.why,
    )


_SAME = (_TABLE.kind == bindparam("of_kind"), _TABLE.subject == bindparam("of_subject"))
_THIS = (_TABLE.id == bindparam("this"), _TABLE.generation == bindparam("mine"), _ACTIVE)
_CLAIMED = FixedQuery(select(_TABLE.id).where(*_SAME, _ACTIVE), lambda row: int(row.id), remember=10)
_STILL_ACTIVE = FixedQuery(select(_TABLE.id).where(*_THIS), lambda row: int(row.id), remember=10)
_LAST_GENERATION = FixedQuery(
    select(func.coalesce(func.max(_TABLE.generation), 0).label("last")).where(*_SAME),
    lambda row: int(row.last),
    remember=10,
)
_INSERT = inserting(schema.claims)
_FINISH = updating(schema.claims, *_THIS, columns=("active", "finished_at"))
_LATEST = FixedQuery(
    select(schema.claims).where(*_SAME).order_by(_TABLE.generation.desc()).limit(1), _claim, remember=10
)
_LIST_ACTIVE = FixedQuery(_ALL_ACTIVE, _claim, remember=None)
