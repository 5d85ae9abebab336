"""Answered requests, so that a repeated one gets the first answer and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, delete, insert, select

from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.requests.c
_KNOWN = FixedQuery(
    select(_TABLE.at).where(_TABLE.project == bindparam("of_project"), _TABLE.request == bindparam("named")),
    lambda row: True,
    remember=10,
)


def remember(tx: Transaction, project: int, request: str, answer: Mapping[str, Any]) -> None:
    tx.execute(
        insert(schema.requests), [{"project": project, "request": request, "answer": dict(answer), "at": tx.now}]
    )


def recall(tx: ReadTransaction, project: int, request: str) -> dict[str, Any] | None:
    """The first answer; None where the request is new."""
    table = schema.requests.c
    found = select(table.answer).where(table.project == project, table.request == request)
    answer: dict[str, Any] | None = tx.execute(found).scalar_one_or_none()
    return answer


def is_known(tx: ReadTransaction, project: int, request: str) -> bool:
    return _KNOWN.first(tx, of_project=project, named=request) is not None


def forget(tx: Transaction, project: int, request: str) -> None:
    table = schema.requests.c
    tx.execute(delete(schema.requests).where(table.project == project, table.request == request))


def starting_with(tx: ReadTransaction, start: str) -> list[tuple[int, str]]:
    """The project and the name of each request that starts so."""
    table = schema.requests.c
    found = select(table.project, table.request).where(table.request.startswith(start, autoescape=True))
    return [(row.project, row.request) for row in tx.execute(found.order_by(table.project, table.request))]


def remember_call(tx: Transaction, caller: str, request: str, answer: Mapping[str, Any]) -> None:
    """Like `remember`, for requests about agents."""
    tx.execute(insert(schema.calls), [{"caller": caller, "request": request, "answer": dict(answer), "at": tx.now}])


def recall_call(tx: ReadTransaction, caller: str, request: str) -> dict[str, Any] | None:
    table = schema.calls.c
    found = select(table.answer).where(table.caller == caller, table.request == request)
    answer: dict[str, Any] | None = tx.execute(found).scalar_one_or_none()
    return answer
