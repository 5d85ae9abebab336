"""Gives a run a new conversation; later runs share it."""

from __future__ import annotations

import uuid

from sqlalchemy import update

from legion.store.database import schema
from legion.store.database.transactions import Transaction


def renew(tx: Transaction, run: int) -> None:
    """Call it before the run's program starts, or it would have two."""
    mine = update(schema.runs).where(schema.runs.c.id == run)
    tx.execute(mine.values(conversation=str(uuid.uuid4())))
