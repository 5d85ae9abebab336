"""Column types: texts, JSON, flags and enums, the same in both databases."""

from __future__ import annotations

from enum import Enum
from typing import Any

from sqlalchemy import Column, Dialect, Integer, MetaData, Text, TypeDecorator
from sqlalchemy import Enum as SqlEnum
from sqlalchemy.types import TypeEngine

from legion.domain.text import from_json, storable, to_json

metadata = MetaData()
"""All tables."""


class AnyText(TypeDecorator[str]):
    """Any text a program may print. What no database can store (NUL, unpaired surrogates) becomes a visible mark."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


class Json(TypeDecorator[Any]):
    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        return None if value is None else to_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        return None if value is None else from_json(value)


class Flag(TypeDecorator[bool]):
    """True and false as 1 and 0, so that one SQL text serves both databases."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: bool | None, dialect: Dialect) -> int | None:
        return None if value is None else int(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> bool | None:
        return None if value is None else bool(value)


def one_of(kind: type[Enum]) -> SqlEnum:
    """An enum by its value, not by its name."""
    return SqlEnum(kind, native_enum=False, length=None, values_callable=lambda members: [m.value for m in members])


def keys(kind: type[TypeEngine[Any]], *names: str) -> tuple[Column[Any], ...]:
    """Columns of the primary key. Numbers are given by `counters`."""
    return tuple(Column(name, kind, primary_key=True, autoincrement=False) for name in names)


def required(kind: type[TypeEngine[Any]], *names: str) -> tuple[Column[Any], ...]:
    return tuple(Column(name, kind, nullable=False) for name in names)


def optional(kind: type[TypeEngine[Any]], *names: str) -> tuple[Column[Any], ...]:
    """Columns that may be null."""
    return tuple(Column(name, kind) for name in names)
