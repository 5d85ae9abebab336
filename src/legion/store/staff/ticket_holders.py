"""Which standing agent has claimed which ticket. There is one writer at a time, so no two claim the same."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import delete, insert, literal_column, select, update

from legion.domain.agents.agent import ClaimedTicket
from legion.domain.tickets.ticket import State
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.claimed_tickets.c
_LIVE = FixedQuery(
    select(_TABLE.ticket)
    .join(schema.tickets, schema.tickets.c.id == _TABLE.ticket)
    .where(schema.tickets.c.live == literal_column("1")),
    lambda row: int(row.ticket),
    remember=100,
)
_ALL = FixedQuery(select(_TABLE.ticket, _TABLE.agent), lambda row: (int(row.ticket), str(row.agent)), remember=None)


def hold(tx: Transaction, ticket: int, agent: str) -> ClaimedTicket:
    """The ticket is this agent's from now on, also if another had it."""
    drop(tx, ticket)
    number = tx.next("holding")
    holding = ClaimedTicket(ticket=ticket, number=number, agent=agent, planted=False, submitted=False, since=tx.now)
    tx.execute(insert(schema.claimed_tickets), [asdict(holding)])
    return holding


def drop(tx: Transaction, ticket: int) -> None:
    tx.execute(delete(schema.claimed_tickets).where(_TABLE.ticket == ticket))


def note(tx: Transaction, ticket: int, *, planted: bool | None = None, submitted: bool | None = None) -> None:
    values = {"planted": planted, "submitted": submitted}
    told = {name: value for name, value in values.items() if value is not None}
    tx.execute(update(schema.claimed_tickets).where(_TABLE.ticket == ticket).values(told))


def of_ticket(tx: ReadTransaction, ticket: int) -> ClaimedTicket | None:
    row = tx.execute(select(schema.claimed_tickets).where(_TABLE.ticket == ticket)).one_or_none()
    return None if row is None else ClaimedTicket(**row._mapping)


def current(tx: ReadTransaction, agent: str) -> ClaimedTicket | None:
    """The ticket that the agent works on: not stopped, and in no queue."""
    tickets = schema.tickets.c
    found = (
        select(schema.claimed_tickets)
        .join(schema.tickets, tickets.id == _TABLE.ticket)
        .where(_TABLE.agent == agent, tickets.state == State.WORKING)
        .order_by(_TABLE.number.desc())
        .limit(1)
    )
    row = tx.execute(found).one_or_none()
    return None if row is None else ClaimedTicket(**row._mapping)


def tickets(tx: ReadTransaction) -> frozenset[int]:
    """All claimed tickets that have not ended."""
    return frozenset(_LIVE.all(tx))


def holders(tx: ReadTransaction) -> dict[int, str]:
    """The agent of each claimed ticket."""
    return dict(_ALL.all(tx))
