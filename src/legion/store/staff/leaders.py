"""The last event that each leader has read, the size of its conversation, and how often it started a fresh one."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlalchemy import select, update

from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction


@dataclass(frozen=True, kw_only=True)
class LeaderState:
    agent: int
    """Its number."""
    seen: int = 0
    """The last event that a digest in its conversation covers."""
    shown: int = 0
    """The last event that the digest of the present turn covers; it counts once the prompt was delivered."""
    noticed: int = 0
    """The last event that was read for a notice."""
    tokens: int = 0
    """The size of its conversation after the last turn."""
    compacted: bool = False
    """Its program compacted the conversation by itself."""
    called: bool = False
    """It was asked to write down what its conversation holds."""
    handovers: int = 0


_TABLE = schema.agents.c
_COLUMNS = (_TABLE.number.label("agent"), *(_TABLE[one.name] for one in fields(LeaderState) if one.name != "agent"))


def get(tx: ReadTransaction, agent: int) -> LeaderState:
    row = tx.execute(select(*_COLUMNS).where(_TABLE.number == agent)).one_or_none()
    return LeaderState(agent=agent) if row is None else LeaderState(**row._mapping)


def change(tx: Transaction, agent: int, **values: int) -> LeaderState:
    tx.execute(update(schema.agents).where(_TABLE.number == agent).values(values))
    return get(tx, agent)
