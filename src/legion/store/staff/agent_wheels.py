"""Standing agents whose conversation a person takes over, one row each."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlalchemy import delete, insert, select

from legion.domain.wheel import AgentWheel
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.agent_wheels.c


def of_agent(tx: ReadTransaction, agent: int) -> AgentWheel | None:
    row = tx.execute(select(schema.agent_wheels).where(_TABLE.agent == agent)).one_or_none()
    return None if row is None else AgentWheel(**row._mapping)


def put(tx: Transaction, wanted: AgentWheel) -> None:
    """In place of the row of this agent, if it has one."""
    end(tx, wanted.agent)
    tx.execute(insert(schema.agent_wheels), [asdict(replace(wanted, since=tx.now))])


def end(tx: Transaction, agent: int) -> None:
    tx.execute(delete(schema.agent_wheels).where(_TABLE.agent == agent))
