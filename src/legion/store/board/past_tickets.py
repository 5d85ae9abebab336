"""Tickets that have ended: how many, and which programs and models ended which, for the choice of a program."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, func, insert, select, update

from legion.domain.agents.teams import RolePart
from legion.domain.events import EventKind
from legion.domain.scheduling.program_choice import PastTicket
from legion.domain.tickets.ticket import ENDED, State, Ticket
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

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


def counts(tx: ReadTransaction, of: Iterable[int]) -> dict[State, int]:
    """How many tickets of these projects are on the board and ended so; states without any are left out."""
    names = {_counter(project, state): state for project in of for state in ENDED}
    counter, found = schema.counters.c, dict[State, int]()
    for row in tx.execute(select(schema.counters).where(counter.name.in_(names), counter.value > 0)):
        found[names[row.name]] = found.get(names[row.name], 0) + row.value
    return found


def count(tx: Transaction, ticket: Ticket, change: int) -> None:
    """Keep these numbers, so that no one adds them up; nothing for a ticket that has not ended."""
    if not ticket.ended:
        return
    counter, name = schema.counters.c, _counter(ticket.project, ticket.state)
    more = update(schema.counters).where(counter.name == name).values(value=counter.value + change)
    if tx.execute(more).rowcount == 0:
        tx.execute(insert(schema.counters), [{"name": name, "value": change}])


def count_again(tx: Transaction) -> None:
    """Once, after rows were written by other means."""
    ticket = schema.tickets.c
    tx.execute(delete(schema.counters).where(schema.counters.c.name.like(f"{PREFIX}%")))
    found = select(ticket.project, ticket.state, func.count().label("many")).group_by(ticket.project, ticket.state)
    for row in tx.execute(found.where(ticket.state.in_(ENDED), ticket.dropped_at.is_(None))).all():
        tx.execute(insert(schema.counters), [{"name": _counter(row.project, row.state), "value": row.many}])


PREFIX = "ended/"


def _counter(project: int, state: State) -> str:
    return f"{PREFIX}{project}/{state.value}"


def retire(tx: Transaction, project: int, ticket: int, why: str) -> None:
    """The proofs of a landed ticket no longer run for later changes; with an empty reason they do again."""
    mine = (schema.tickets.c.id == ticket, schema.tickets.c.project == project)
    tx.execute(update(schema.tickets).where(*mine).values(retired=why))
    tx.record(EventKind.TICKET_EDITED, project=project, ticket=ticket, data={"fields": ["retire"], "why": why})
