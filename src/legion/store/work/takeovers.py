"""Conversations that a person has taken over, or wants to: one row for each ticket or standing agent."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlalchemy import bindparam, delete, insert, or_, select

from legion.domain.takeovers import Takeover, TakeoverMode, TakeoverStage
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.takeovers.c
_ONE = FixedQuery(
    select(schema.takeovers).where(_TABLE.ticket == bindparam("mine"), _TABLE.agent == bindparam("its")),
    lambda row: Takeover(**vars(row)),
    remember=100,
)
_AT_WORK = FixedQuery(
    select(_TABLE.ticket).where(
        _TABLE.agent == 0, or_(_TABLE.mode == TakeoverMode.PERSON, _TABLE.stage == TakeoverStage.CUT)
    ),
    lambda row: int(row.ticket),
    remember=None,
)


def at_work(tx: ReadTransaction) -> frozenset[int]:
    """The tickets that people work on themselves, or whose agent is interrupted for them."""
    return frozenset(_AT_WORK.all(tx))


def of_ticket(tx: ReadTransaction, ticket: int) -> Takeover | None:
    return _ONE.first(tx, mine=ticket, its=0)


def of_agent(tx: ReadTransaction, agent: int) -> Takeover | None:
    return _ONE.first(tx, mine=0, its=agent)


def put(tx: Transaction, wanted: Takeover) -> Takeover:
    """In place of the row of this ticket or agent, if it has one."""
    made = replace(wanted, since=tx.now)
    end(tx, ticket=wanted.ticket, agent=wanted.agent)
    tx.execute(insert(schema.takeovers), [asdict(made)])
    return made


def end(tx: Transaction, *, ticket: int = 0, agent: int = 0) -> None:
    tx.execute(delete(schema.takeovers).where(_TABLE.ticket == ticket, _TABLE.agent == agent))
