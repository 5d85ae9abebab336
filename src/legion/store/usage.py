"""What runs spent, as the gateway's ledger told, and what providers said about their limits.

The position in the ledger moves in the transaction that writes down what was read, so every line counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Row, func, insert, select, update

from legion.domain.budgets import Spent
from legion.domain.tickets import State
from legion.domain.usage import Limit, Spending, Usage, Work, fate, total
from legion.store import schema
from legion.store.database import ReadTransaction, Transaction

_TABLE = schema.usage.c
_COUNTS = tuple(Usage.__dataclass_fields__)


def add(tx: Transaction, spending: Iterable[Spending]) -> None:
    """Add to what is known of the same run, provider, model and day."""
    for one in spending:
        same = (
            _TABLE.run == one.run,
            _TABLE.provider == one.provider,
            _TABLE.model == one.model,
            _TABLE.day == one.day,
        )
        row = tx.execute(select(schema.usage).where(*same)).one_or_none()
        if row is None:
            facts = {"run": one.run, "provider": one.provider, "model": one.model, "day": one.day}
            tx.execute(insert(schema.usage), [facts | _values(one.usage)])
        else:
            tx.execute(update(schema.usage).where(*same).values(_values(_usage(row) + one.usage)))


def of_runs(tx: ReadTransaction, runs: Iterable[int]) -> Mapping[int, Usage]:
    """What each run spent in all; runs that spent nothing are left out."""
    found: dict[int, Usage] = {}
    for row in tx.execute(select(schema.usage).where(_TABLE.run.in_(tuple(runs)))):
        found[row.run] = found.get(row.run, Usage()) + _usage(row)
    return found


def of_ticket(tx: ReadTransaction, ticket: int) -> Usage:
    """What all runs of a ticket spent."""
    runs = select(schema.runs.c.id).where(schema.runs.c.ticket == ticket)
    return total(_usage(row) for row in tx.execute(select(schema.usage).where(_TABLE.run.in_(runs))))


def work(tx: ReadTransaction, project: int | None = None) -> tuple[Work, ...]:
    """Every run, those of dropped tickets included: their money is gone too."""
    table, ticket = schema.runs.c, schema.tickets.c
    found = select(
        table.id, table.ticket, table.attempt, table.started_at, table.ended_at,
        ticket.title, ticket.epic, ticket.state, ticket.live, ticket.attempt.label("latest"),
    ).select_from(schema.runs.join(schema.tickets, ticket.id == table.ticket))  # fmt: skip
    # No agent works on a ticket that takes another back.
    found = found.where(ticket.undoes.is_(None))
    if project is not None:
        found = found.where(ticket.project == project)
    return tuple(
        Work(
            run=row.id,
            ticket=row.ticket,
            title=row.title,
            epic=row.epic,
            agent=f"agent of ticket {row.ticket}",
            started_at=row.started_at,
            ended_at=row.ended_at,
            fate=fate(attempt=row.attempt, latest=row.latest, done=row.state is State.DONE, live=row.live),
        )
        for row in tx.execute(found.order_by(table.id))
    )


def spending(tx: ReadTransaction, project: int | None = None) -> tuple[Spending, ...]:
    """What every run spent, by model and day."""
    found = select(schema.usage)
    if project is not None:
        ours = select(schema.tickets.c.id).where(schema.tickets.c.project == project)
        found = found.where(_TABLE.run.in_(select(schema.runs.c.id).where(schema.runs.c.ticket.in_(ours))))
    return tuple(
        Spending(run=row.run, provider=row.provider, model=row.model, day=row.day, usage=_usage(row))
        for row in tx.execute(found.order_by(_TABLE.run, _TABLE.provider, _TABLE.model, _TABLE.day))
    )


def spent(tx: ReadTransaction) -> tuple[Spent, ...]:
    """What was spent in all, by project, epic and day."""
    ticket, run = schema.tickets.c, schema.runs.c
    found = (
        select(ticket.project, ticket.epic, _TABLE.day, func.sum(_TABLE.usd).label("usd"))
        .select_from(schema.usage.join(schema.runs, run.id == _TABLE.run).join(schema.tickets, ticket.id == run.ticket))
        .group_by(ticket.project, ticket.epic, _TABLE.day)
    )
    return tuple(Spent(project=row.project, epic=row.epic, day=row.day, usd=row.usd) for row in tx.execute(found))


def read_up_to(tx: ReadTransaction, source: str) -> tuple[str, int]:
    """Up to where a source was read: a file's name and a place in it."""
    row = tx.execute(select(schema.readings).where(schema.readings.c.source == source)).one_or_none()
    return ("", 0) if row is None else (row.file, row.place)


def have_read(tx: Transaction, source: str, file: str, place: int) -> None:
    mine = update(schema.readings).where(schema.readings.c.source == source).values(file=file, place=place)
    if tx.execute(mine).rowcount == 0:
        tx.execute(insert(schema.readings), [{"source": source, "file": file, "place": place}])


def note_limit(tx: Transaction, limit: Limit) -> None:
    """The last word of each provider counts."""
    facts = {
        "at": limit.at,
        "status": limit.status,
        "span": limit.span,
        "utilization": limit.utilization,
        "resets_at": limit.resets_at,
    }
    same = schema.limits.c.provider == limit.provider
    if tx.execute(update(schema.limits).where(same).values(facts)).rowcount == 0:
        tx.execute(insert(schema.limits), [{"provider": limit.provider, **facts}])


def limits(tx: ReadTransaction) -> Mapping[str, Limit]:
    """What each provider said last."""
    return {row.provider: Limit(**row._mapping) for row in tx.execute(select(schema.limits))}


def _values(usage: Usage) -> dict[str, Any]:
    return {name: getattr(usage, name) for name in _COUNTS}


def _usage(row: Row[Any]) -> Usage:
    return Usage(**{name: row._mapping[name] for name in _COUNTS})
