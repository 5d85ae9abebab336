"""Budgets and gates of epics that have one of their own."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from legion.domain.tickets.policy import LandingGate
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.epics.c
_GATES = schema.epic_gates.c
_ALL = FixedQuery(select(schema.epics), lambda row: ((row.project, row.name), row.budget), remember=None)
_ALL_GATES = FixedQuery(select(schema.epic_gates), lambda row: ((row.project, row.name), row.gate), remember=None)


def budgets(tx: ReadTransaction) -> dict[tuple[int, str], float]:
    """Dollars by project and name."""
    return dict(_ALL.all(tx))


def set_budget(tx: Transaction, project: int, name: str, usd: float | None) -> None:
    """None: the epic has the limit of the settings again."""
    tx.execute(delete(schema.epics).where(_TABLE.project == project, _TABLE.name == name))
    if usd is not None:
        tx.execute(insert(schema.epics), [{"project": project, "name": name, "budget": usd}])
    # Tickets may be able to start now.
    tx.tell()


def gates(tx: ReadTransaction) -> dict[tuple[int, str], LandingGate]:
    """By project and name."""
    return dict(_ALL_GATES.all(tx))


def set_gate(tx: Transaction, project: int, name: str, gate: LandingGate | None) -> None:
    """None: the project's gate is in force again."""
    tx.execute(delete(schema.epic_gates).where(_GATES.project == project, _GATES.name == name))
    if gate is not None:
        tx.execute(insert(schema.epic_gates), [{"project": project, "name": name, "gate": gate}])
    tx.tell()
