"""Remembers that a session was started again from its rewritten branch, so the target lacks what it had before."""

from __future__ import annotations

from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import idempotency

_REQUEST = "session-restart"


def remember(tx: Transaction, project: int) -> None:
    if not happened(tx, project):
        idempotency.remember(tx, project, _REQUEST, {})


def happened(tx: ReadTransaction, project: int) -> bool:
    return idempotency.is_known(tx, project, _REQUEST)
