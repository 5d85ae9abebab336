"""A run may begin a conversation of its own; those after it share that one."""

from __future__ import annotations

import uuid

from sqlalchemy import update

from legion.store.database import schema
from legion.store.database.transactions import Transaction


def renew(tx: Transaction, run: int) -> None:
    """Before the run's program starts, or it would have two."""
    mine = update(schema.runs).where(schema.runs.c.id == run)
    tx.execute(mine.values(conversation=str(uuid.uuid4())))
