"""Receipts: the proof that a check ran on a tree. Written once, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, bindparam, insert, select

from legion.domain.checks import CheckResult, Receipt
from legion.domain.events import EventKind
from legion.domain.text import storable
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.receipts.c


def add(
    tx: Transaction,
    *,
    project: int,
    ticket: int | None,
    name: str,
    command: str,
    commit: str,
    tree: str,
    verdict: CheckResult,
    exit_code: int | None,
    duration: float,
    tail: str,
    output: str,
    digest: str,
    machine: str = "",
    trusted: str = "",
) -> Receipt:
    row = {
        "id": tx.next("receipt"),
        "project": project,
        "ticket": ticket,
        "name": name,
        "command": command,
        "commit_id": commit,
        "tree": tree,
        "verdict": verdict,
        "exit_code": exit_code,
        "duration": duration,
        "made_at": tx.now,
        "tail": storable(tail),
        "output": output,
        "digest": digest,
        "machine": machine,
        "trusted": trusted,
    }
    tx.execute(insert(schema.receipts), [row])
    data = {
        "receipt": row["id"],
        "name": name,
        "verdict": verdict.value,
        "exit_code": exit_code,
        "duration": duration,
        "commit": commit,
    }
    tx.record(EventKind.RECEIPT, project=project, ticket=ticket, data=data)
    return _receipt(row)


def for_tree(tx: ReadTransaction, project: int, tree: str) -> tuple[Receipt, ...]:
    """Oldest first; so are all lists here."""
    return _FOR_TREE.all(tx, of_project=project, of_tree=tree)


def for_commit(tx: ReadTransaction, project: int, commit: str) -> tuple[Receipt, ...]:
    return _found(tx, _TABLE.project == project, _TABLE.commit_id == commit)


def of_ticket(tx: ReadTransaction, ticket: int) -> tuple[Receipt, ...]:
    """Its own proofs; those of the batch it landed with are found by the landed commit."""
    return _found(tx, _TABLE.ticket == ticket)


def get_many(tx: ReadTransaction, ids: Sequence[int]) -> tuple[Receipt, ...]:
    return _found(tx, _TABLE.id.in_(ids)) if ids else ()


def _found(tx: ReadTransaction, *conditions: ColumnElement[bool]) -> tuple[Receipt, ...]:
    found = tx.execute(select(schema.receipts).where(*conditions).order_by(_TABLE.id))
    return tuple(_receipt(row._asdict()) for row in found)


def _receipt(row: Mapping[str, Any]) -> Receipt:
    return Receipt(commit=row["commit_id"], **{name: value for name, value in row.items() if name != "commit_id"})


_FOR_TREE = FixedQuery(
    select(schema.receipts)
    .where(_TABLE.project == bindparam("of_project"), _TABLE.tree == bindparam("of_tree"))
    .order_by(_TABLE.id),
    lambda row: _receipt(vars(row)),
    remember=100,
)
