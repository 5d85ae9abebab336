"""Plans of tickets: which tickets need one, what was proposed, and the decision."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import bindparam, insert, select, update

from legion.domain.agents.agent import Planning
from legion.domain.events import EventKind
from legion.domain.tickets.spec import TicketPlan
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.plans.c
_OF_TICKET = FixedQuery(
    select(schema.plans).where(_TABLE.ticket == bindparam("mine")), lambda row: TicketPlan(**vars(row)), remember=50
)


def want(tx: Transaction, ticket: int) -> None:
    """Its agent may only read until a plan is approved."""
    values = {"ticket": ticket, "stage": Planning.WANTED, "text": "", "decided_by": "", "decided_at": None, "why": ""}
    tx.execute(insert(schema.plans), [values])


def of_ticket(tx: ReadTransaction, ticket: int) -> TicketPlan | None:
    """None where no plan was asked for."""
    return _OF_TICKET.first(tx, mine=ticket)


def proposed(tx: ReadTransaction, dispatcher: str) -> tuple[int, ...]:
    """The tickets of an agent whose plans wait for a decision."""
    of_them = schema.tickets.c
    found = (
        select(_TABLE.ticket)
        .join(schema.tickets, of_them.id == _TABLE.ticket)
        .where(_TABLE.stage == Planning.PROPOSED, of_them.dispatcher == dispatcher)
    )
    return tuple(tx.execute(found.order_by(_TABLE.ticket)).scalars())


def propose(tx: Transaction, ticket: int, text: str) -> None:
    tx.execute(update(schema.plans).where(_TABLE.ticket == ticket).values(stage=Planning.PROPOSED, text=text))


def decide(tx: Transaction, ticket: int, *, approve: bool, by: str, why: str) -> None:
    stage = Planning.APPROVED if approve else Planning.WANTED
    values: Mapping[str, object] = {"stage": stage, "decided_by": by, "decided_at": tx.now, "why": why}
    tx.execute(update(schema.plans).where(_TABLE.ticket == ticket).values(values))
    project = tx.execute(select(schema.tickets.c.project).where(schema.tickets.c.id == ticket)).scalar_one()
    kind = EventKind.PLAN_APPROVED if approve else EventKind.PLAN_REJECTED
    tx.record(kind, project=project, ticket=ticket, data={"by": by, "why": why})
