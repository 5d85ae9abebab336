"""Gives a repeated request its first answer, and refuses a request whose id another operation has used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from legion.domain.errors import StateConflict
from legion.store.database.transactions import Transaction
from legion.store.work import idempotency

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class _Shape(Protocol):
    schema: str


def repeated(tx: Transaction, caller: str, request: str, shape: type[_Shape]) -> dict[str, Any] | None:
    """The first answer, if the same request about agents was answered before."""
    first = idempotency.recall(tx, caller, request) if request else None
    refuse_other_operation(first, "schema", shape.schema)
    return first


def remembered(tx: Transaction, caller: str, request: str, answer: DataclassInstance) -> None:
    if request:
        idempotency.remember(tx, caller, request, asdict(answer))


def refuse_other_operation(first: Mapping[str, Any] | None, name: str, value: object = None) -> None:
    """Raise StateConflict where an answer was stored that has no such entry, or another value in it."""
    if first is not None and (name not in first or value not in (None, first[name])):
        raise StateConflict("This request id belongs to another operation. Give each request an id of its own.")
