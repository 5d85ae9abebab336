"""A select that is run often: compiled once per database, and each stored row made into a record once.

The rows come from the driver as they are stored. A row that was seen before gives the record that was made of it then,
so records must be immutable. The values of columns are converted by the same types as everywhere else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from sqlalchemy import BindParameter, ColumnElement, Dialect, Enum, Row, Select, TypeDecorator, bindparam
from sqlalchemy.types import TypeEngine

from legion.store.database.prepared import PreparedStatement
from legion.store.database.transactions import ReadTransaction

_Record = TypeVar("_Record")
Stored = SimpleNamespace | Row[Any]
"""A row with one attribute per column, from here or from a statement that SQLAlchemy ran."""
_SIZES = (1, 8, 64, 500)
"""How many ids one statement names: each size is a statement of its own, and a list is filled up to the next size."""
_Column = tuple[str, Callable[[Any], Any] | None]


class FixedQuery(Generic[_Record]):
    """`make` gets an object with one attribute per column. The values that vary are named by `bindparam`.

    It keeps `remember` records, those that were used last. None keeps those of the last answer: for a long list that is
    read whole, of which a number would be too small for a long list and far too much for a short one.
    """

    def __init__(
        self, statement: Select[Any], make: Callable[[SimpleNamespace], _Record], *, remember: int | None
    ) -> None:
        self._statement = statement
        self._prepared = PreparedStatement(statement)
        self._make = make
        self._columns: dict[str, tuple[_Column, ...]] = {}
        self._last: dict[str, dict[tuple[Any, ...], _Record]] | None = {} if remember is None else None
        self._record = functools.lru_cache(maxsize=remember or 0)(self._make_record)

    def all(self, tx: ReadTransaction, **values: object) -> tuple[_Record, ...]:
        """The records in the order of the statement."""
        dialect = tx.dialect
        if dialect.name not in self._columns:
            self._columns[dialect.name] = self._columns_for(dialect)
        rows = tx.rows(self._prepared, values)
        if self._last is None:
            return tuple(self._record(dialect.name, row) for row in rows)
        # Replaced as a whole: another thread may read the last answer while this one makes the next.
        before = self._last.get(dialect.name, {})
        records = tuple(before.get(row) or self._make_record(dialect.name, row) for row in rows)
        self._last[dialect.name] = dict(zip(rows, records, strict=True))
        return records

    def first(self, tx: ReadTransaction, **values: object) -> _Record | None:
        found = self.all(tx, **values)
        return found[0] if found else None

    def _columns_for(self, dialect: Dialect) -> tuple[_Column, ...]:
        return tuple((column.name, _converter(column.type, dialect)) for column in self._statement.selected_columns)

    def _make_record(self, dialect: str, row: tuple[Any, ...]) -> _Record:
        columns = self._columns[dialect]
        values = {
            name: value if convert is None else convert(value)
            for (name, convert), value in zip(columns, row, strict=True)
        }
        return self._make(SimpleNamespace(**values))


class QueryByIds(Generic[_Record]):
    """The same for rows that are found by a list of ids."""

    def __init__(
        self,
        statement: Select[Any],
        column: ColumnElement[Any],
        make: Callable[[SimpleNamespace], _Record],
        *,
        remember: int,
    ) -> None:
        def named(size: int) -> list[BindParameter[Any]]:
            return [bindparam(f"id{number}", type_=column.type) for number in range(size)]

        self._queries = {
            size: FixedQuery(statement.where(column.in_(named(size))), make, remember=remember) for size in _SIZES
        }

    def all(self, tx: ReadTransaction, ids: Iterable[object]) -> tuple[_Record, ...]:
        """The records of these ids, in no order where the ids are many."""
        rest = list(dict.fromkeys(ids))
        found: list[_Record] = []
        while rest:
            size = next((size for size in _SIZES if size >= len(rest)), _SIZES[-1])
            some, rest = rest[:size], rest[size:]
            # The last id once more is the same row.
            filled = (*some, *(some[-1:] * (size - len(some))))
            found += self._queries[size].all(tx, **{f"id{number}": id for number, id in enumerate(filled)})
        return tuple(found)


def _converter(type: TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    """Numbers and plain text come from every driver as they are; our own types and enums are converted."""
    if not isinstance(type, TypeDecorator | Enum):
        return None
    return type.dialect_impl(dialect).result_processor(dialect, None)
