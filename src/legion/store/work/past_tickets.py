"""Reads which programs and models ended which tickets of a project, for the choice of a program."""

from __future__ import annotations

from sqlalchemy import func, select

from legion.domain.agents.teams import RolePart
from legion.domain.scheduling.program_choice import PastTicket
from legion.domain.tickets.ticket import State
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction

_MOST = 300
"""Ended tickets that are read, the last ones."""


def of_project(tx: ReadTransaction, project: int) -> tuple[PastTicket, ...]:
    """Tickets on which several programs worked are left out: none of them is the cause of the result."""
    ticket, run, usage = schema.tickets.c, schema.runs.c, schema.usage.c
    ended = (
        select(ticket.id, ticket.state, ticket.model, ticket.labels, ticket.files, ticket.attempt)
        .where(ticket.project == project, ticket.state.in_((State.DONE, State.FAILED)))
        .where(ticket.checkpoint == 0, ticket.undoes.is_(None))
        .order_by(ticket.moved_at.desc())
        .limit(_MOST)
    )
    rows = {row.id: row for row in tx.execute(ended)}
    built = select(run.ticket, run.driver).where(run.ticket.in_(rows), run.part == RolePart.BUILD).distinct()
    drivers: dict[int, set[str]] = {}
    for row in tx.execute(built):
        drivers.setdefault(row.ticket, set()).add(row.driver)
    costs = (
        select(run.ticket, func.sum(usage.usd).label("usd"))
        .join(schema.usage, usage.run == run.id)
        .where(run.ticket.in_(rows))
        .group_by(run.ticket)
    )
    spent = {row.ticket: float(row.usd or 0.0) for row in tx.execute(costs)}
    return tuple(
        PastTicket(
            driver=next(iter(drivers[id])),
            model=row.model,
            labels=tuple(row.labels),
            files=tuple(row.files),
            landed=row.state is State.DONE,
            attempts=row.attempt,
            usd=spent.get(id, 0.0),
        )
        for id, row in rows.items()
        if len(drivers.get(id, ())) == 1 and drivers[id] != {""}
    )
