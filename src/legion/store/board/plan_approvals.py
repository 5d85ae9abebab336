"""Approaches of tickets: which agents wait for approval of one, what they proposed, and the decision."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import bindparam, select, update

from legion.domain.agents.agent import Planning
from legion.domain.events import EventKind
from legion.domain.tickets.spec import TicketPlan
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.ticket_details.c
_COLUMNS = {
    "stage": _TABLE.approach_stage,
    "text": _TABLE.approach,
    "decided_by": _TABLE.approach_by,
    "decided_at": _TABLE.approach_at,
    "why": _TABLE.approach_why,
}
_OF_TICKET = FixedQuery(
    select(_TABLE.ticket, *(column.label(name) for name, column in _COLUMNS.items())).where(
        _TABLE.ticket == bindparam("mine"), _TABLE.approach_stage.is_not(None)
    ),
    lambda row: TicketPlan(**vars(row)),
    remember=50,
)


def want(tx: Transaction, ticket: int) -> None:
    """Its agent may only read until its approach is approved."""
    _write(tx, ticket, {"stage": Planning.WANTED, "text": "", "decided_by": "", "decided_at": None, "why": ""})


def of_ticket(tx: ReadTransaction, ticket: int) -> TicketPlan | None:
    """None where no approval was asked for."""
    return _OF_TICKET.first(tx, mine=ticket)


def proposed(tx: ReadTransaction, dispatcher: str) -> tuple[int, ...]:
    """The tickets of an agent whose approaches wait for a decision."""
    of_them = schema.tickets.c
    found = (
        select(_TABLE.ticket)
        .join(schema.tickets, of_them.id == _TABLE.ticket)
        .where(_TABLE.approach_stage == Planning.PROPOSED, of_them.dispatcher == dispatcher)
    )
    return tuple(tx.execute(found.order_by(_TABLE.ticket)).scalars())


def propose(tx: Transaction, ticket: int, text: str) -> None:
    _write(tx, ticket, {"stage": Planning.PROPOSED, "text": text})


def decide(tx: Transaction, ticket: int, *, approve: bool, by: str, why: str) -> None:
    stage = Planning.APPROVED if approve else Planning.WANTED
    _write(tx, ticket, {"stage": stage, "decided_by": by, "decided_at": tx.now, "why": why})
    project = tx.execute(select(schema.tickets.c.project).where(schema.tickets.c.id == ticket)).scalar_one()
    kind = EventKind.PLAN_APPROVED if approve else EventKind.PLAN_REJECTED
    tx.record(kind, project=project, ticket=ticket, data={"by": by, "why": why})


def _write(tx: Transaction, ticket: int, values: Mapping[str, object]) -> None:
    named = {_COLUMNS[name].name: value for name, value in values.items()}
    tx.execute(update(schema.ticket_details).where(_TABLE.ticket == ticket).values(named))
