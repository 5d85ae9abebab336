"""Forges of projects: connections, claims of issues, pull requests of tickets, feedback that was taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from legion.domain.forge.connections import ClaimStage, ForgeConnection, IssueClaim, TakenFeedback, TicketPull
from legion.domain.forge.pulls import PullStage, Remark
from legion.store.database import schema, work_tables
from legion.store.database.transactions import ReadTransaction, Transaction

_FORGES = schema.forges.c
_ISSUES = work_tables.forge_issues.c
_PULLS = work_tables.forge_pulls.c
_FEEDBACK = work_tables.forge_feedback.c
OPEN_STAGES = (PullStage.OFFERED, PullStage.OPEN, PullStage.AWAY, PullStage.MERGED)


def save(tx: Transaction, one: ForgeConnection) -> None:
    """Add the project's forge, or replace it."""
    tx.execute(delete(schema.forges).where(_FORGES.project == one.project))
    tx.execute(insert(schema.forges), [{**vars(one), "added_at": one.added_at or tx.now}])


def remove(tx: Transaction, project: int) -> None:
    tx.execute(delete(schema.forges).where(_FORGES.project == project))


def of_project(tx: ReadTransaction, project: int) -> ForgeConnection | None:
    row = tx.execute(select(schema.forges).where(_FORGES.project == project)).one_or_none()
    return None if row is None else ForgeConnection(**row._mapping)


def all(tx: ReadTransaction) -> tuple[ForgeConnection, ...]:
    """Of projects that are still there, oldest first."""
    there = schema.projects.c
    found = select(schema.forges).join(schema.projects, there.id == _FORGES.project).where(there.removed_at.is_(None))
    return tuple(ForgeConnection(**row._mapping) for row in tx.execute(found.order_by(_FORGES.project)))


def note_pass(tx: Transaction, project: int, problem: str, wait_until: float | None = None) -> None:
    """Record the end of a pass: when, and what went wrong."""
    before = of_project(tx, project)
    if before is None:
        return
    since = None if not problem else before.problem_since or tx.now
    synced = before.synced_at if problem else tx.now
    values = {"problem": problem, "problem_since": since, "wait_until": wait_until, "synced_at": synced}
    tx.execute(update(schema.forges).where(_FORGES.project == project).values(values))


# Claims of issues


def claim(tx: Transaction, one: IssueClaim) -> None:
    """Store a claim, or change one."""
    tx.execute(delete(work_tables.forge_issues).where(_ISSUES.project == one.project, _ISSUES.number == one.number))
    tx.execute(insert(work_tables.forge_issues), [{**vars(one), "request": dict(one.request), "at": one.at or tx.now}])


def claim_of(tx: ReadTransaction, project: int, number: int) -> IssueClaim | None:
    found = select(work_tables.forge_issues).where(_ISSUES.project == project, _ISSUES.number == number)
    row = tx.execute(found).one_or_none()
    return None if row is None else IssueClaim(**row._mapping)


def claim_of_ticket(tx: ReadTransaction, ticket: int) -> IssueClaim | None:
    row = tx.execute(select(work_tables.forge_issues).where(_ISSUES.ticket == ticket)).first()
    return None if row is None else IssueClaim(**row._mapping)


def claims(tx: ReadTransaction, project: int, stages: Iterable[ClaimStage]) -> tuple[IssueClaim, ...]:
    found = select(work_tables.forge_issues).where(_ISSUES.project == project, _ISSUES.stage.in_(tuple(stages)))
    return tuple(IssueClaim(**row._mapping) for row in tx.execute(found.order_by(_ISSUES.number)))


# Pull requests


def offer(tx: Transaction, one: TicketPull) -> None:
    """Its change passed all checks. What is known of an open one of the ticket stays; a closed one is replaced."""
    before = pull_of(tx, one.ticket)
    if before is None:
        tx.execute(insert(work_tables.forge_pulls), [{**vars(one), "at": tx.now}])
        return
    fresh = {"number": None, "url": "", "wrote": "", "foreign_commit": "", "merged": ""}
    closed = before.stage in (PullStage.CLOSED, PullStage.LANDED)
    change_pull(tx, one.ticket, stage=one.stage, base=one.base, tested=one.tested, note="", **(fresh if closed else {}))


def change_pull(tx: Transaction, ticket: int, **values: object) -> None:
    tx.execute(update(work_tables.forge_pulls).where(_PULLS.ticket == ticket).values({**values, "at": tx.now}))


def pull_of(tx: ReadTransaction, ticket: int) -> TicketPull | None:
    row = tx.execute(select(work_tables.forge_pulls).where(_PULLS.ticket == ticket)).one_or_none()
    return None if row is None else _pull(row)


def pulls(tx: ReadTransaction, project: int, stages: Iterable[PullStage] = OPEN_STAGES) -> tuple[TicketPull, ...]:
    found = select(work_tables.forge_pulls).where(_PULLS.project == project, _PULLS.stage.in_(tuple(stages)))
    return tuple(_pull(row) for row in tx.execute(found.order_by(_PULLS.ticket)))


def _pull(row: Row[Any]) -> TicketPull:
    return TicketPull(**row._mapping)


# Feedback


def known_sources(tx: ReadTransaction, project: int, sources: Iterable[str]) -> frozenset[str]:
    """Those that were taken already."""
    found = select(_FEEDBACK.source).where(_FEEDBACK.project == project, _FEEDBACK.source.in_(tuple(sources)))
    return frozenset(tx.execute(found).scalars())


def take(tx: Transaction, project: int, ticket: int, remarks: Iterable[Remark], *, answered: bool = False) -> None:
    """Record them as taken, in the transaction that acts on them."""
    rows: list[Mapping[str, object]] = [
        {
            "project": project,
            "source": one.source,
            "ticket": ticket,
            "thread": one.thread,
            "answered": answered or one.thread is None,
            "at": tx.now,
        }
        for one in remarks
    ]
    if rows:
        tx.execute(insert(work_tables.forge_feedback), rows)


def unanswered(tx: ReadTransaction, ticket: int) -> tuple[TakenFeedback, ...]:
    found = select(work_tables.forge_feedback).where(_FEEDBACK.ticket == ticket, _FEEDBACK.answered.in_((False,)))
    return tuple(
        TakenFeedback(
            project=row.project, source=row.source, ticket=row.ticket, thread=row.thread, answered=row.answered
        )
        for row in tx.execute(found.order_by(_FEEDBACK.at, _FEEDBACK.source))
    )


def answered(tx: Transaction, one: TakenFeedback) -> None:
    mine = (_FEEDBACK.project == one.project, _FEEDBACK.source == one.source)
    tx.execute(update(work_tables.forge_feedback).where(*mine).values(answered=True))


# Webhooks
