"""Rows of leaders: the last event that each has read, the size of its conversation, how often it started again."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from sqlalchemy import delete, insert, select

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
    handovers: int = 0


def get(tx: ReadTransaction, agent: int) -> LeaderState:
    row = tx.execute(select(schema.leaders).where(schema.leaders.c.agent == agent)).one_or_none()
    return LeaderState(agent=agent) if row is None else LeaderState(**row._mapping)


def change(tx: Transaction, agent: int, **values: int) -> LeaderState:
    changed = replace(get(tx, agent), **values)  # type: ignore[arg-type]  # names of columns
    tx.execute(delete(schema.leaders).where(schema.leaders.c.agent == agent))
    tx.execute(insert(schema.leaders), [asdict(changed)])
    return changed
