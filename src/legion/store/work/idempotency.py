"""Answered requests, so that a repeated one gets the first answer and changes nothing.

A request belongs to a project, by its number, or to the caller that sent it, by its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, delete, insert, select

from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.requests.c
_KNOWN = FixedQuery(
    select(_TABLE.at).where(_TABLE.scope == bindparam("within"), _TABLE.request == bindparam("named")),
    lambda row: True,
    remember=10,
)
_WEEK = 7 * 86_400.0
_PROJECT, _CALLER, _FORGE = "project-", "caller-", "forge"


def remember(tx: Transaction, of: int | str, request: str, answer: Mapping[str, Any]) -> None:
    _add(tx, _scope(of), request, answer)


def recall(tx: ReadTransaction, of: int | str, request: str) -> dict[str, Any] | None:
    """The first answer; None where the request is new."""
    found = select(_TABLE.answer).where(_TABLE.scope == _scope(of), _TABLE.request == request)
    answer: dict[str, Any] | None = tx.execute(found).scalar_one_or_none()
    return answer


def is_known(tx: ReadTransaction, project: int, request: str) -> bool:
    return _KNOWN.first(tx, within=_scope(project), named=request) is not None


def forget(tx: Transaction, project: int, request: str) -> None:
    tx.execute(delete(schema.requests).where(_TABLE.scope == _scope(project), _TABLE.request == request))


def starting_with(tx: ReadTransaction, start: str) -> list[tuple[int, str]]:
    """The project and the name of each request of a project that starts so."""
    found = select(_TABLE.scope, _TABLE.request).where(
        _TABLE.request.startswith(start, autoescape=True), _TABLE.scope.startswith(_PROJECT, autoescape=True)
    )
    return sorted((int(row.scope.removeprefix(_PROJECT)), row.request) for row in tx.execute(found))


def is_new_delivery(tx: Transaction, delivery: str) -> bool:
    """Whether a forge's delivery was never seen within a week. It is from now on."""
    tx.execute(delete(schema.requests).where(_TABLE.scope == _FORGE, _TABLE.at < tx.now - _WEEK))
    if _KNOWN.first(tx, within=_FORGE, named=delivery) is not None:
        return False
    _add(tx, _FORGE, delivery, {})
    return True


def _add(tx: Transaction, scope: str, request: str, answer: Mapping[str, Any]) -> None:
    tx.execute(insert(schema.requests), [{"scope": scope, "request": request, "answer": dict(answer), "at": tx.now}])


def _scope(of: int | str) -> str:
    return f"{_PROJECT}{of}" if isinstance(of, int) else f"{_CALLER}{of}"
