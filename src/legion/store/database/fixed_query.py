"""A select that is run often: compiled once per database, and each stored row made into a record once.

The rows come from the driver as they are stored. A row that was seen before gives the record that was made of it then,
so records must be immutable. The values of columns are converted by the same types as everywhere else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Dialect, Enum, Row, Select, TypeDecorator, bindparam
from sqlalchemy.types import TypeEngine

from legion.store.database.prepared import PreparedStatement
from legion.store.database.transactions import ReadTransaction

_Record = TypeVar("_Record")
Stored = SimpleNamespace | Row[Any]
"""A row with one attribute per column, from here or from a statement that SQLAlchemy ran."""
_SIZES = (1, 8, 64, 500)
"""How many ids one statement names: each size is a statement of its own, and a list is filled up to the next size."""
_Column = tuple[str, Callable[[Any], Any] | None]


class _RowRecords(Generic[_Record]):
    """Makes records of rows as a driver returns them."""

    def __init__(self, statement: Select[Any], make: Callable[[SimpleNamespace], _Record]) -> None:
        self._statement = statement
        self._make = make
        self._columns: dict[str, tuple[_Column, ...]] = {}

    def prepare(self, dialect: Dialect) -> str:
        """Look up how the columns are converted. Returns the name by which `record` finds it."""
        if dialect.name not in self._columns:
            self._columns[dialect.name] = tuple(
                (column.name, _converter(column.type, dialect)) for column in self._statement.selected_columns
            )
        return dialect.name

    def record(self, dialect: str, row: tuple[Any, ...]) -> _Record:
        values = {
            name: value if convert is None else convert(value)
            for (name, convert), value in zip(self._columns[dialect], row, strict=True)
        }
        return self._make(SimpleNamespace(**values))


class FixedQuery(Generic[_Record]):
    """`make` gets an object with one attribute per column. The values that vary are named by `bindparam`.

    It keeps `remember` records, those that were used last. None keeps those of the last answer for the same values: for
    a list that is read whole, of which a number would be too small for a long list and far too much for a short one.
    Then the values must be few, as projects are.
    """

    def __init__(
        self, statement: Select[Any], make: Callable[[SimpleNamespace], _Record], *, remember: int | None
    ) -> None:
        self._prepared = PreparedStatement(statement)
        self._rows = _RowRecords(statement, make)
        self._remembered = None if remember is None else functools.lru_cache(maxsize=remember)(self._rows.record)
        self._last: dict[tuple[object, ...], dict[tuple[Any, ...], _Record]] = {}

    def all(self, tx: ReadTransaction, **values: object) -> tuple[_Record, ...]:
        """The records in the order of the statement."""
        dialect = self._rows.prepare(tx.dialect)
        rows = tx.rows(self._prepared, values)
        if self._remembered is not None:
            return tuple(self._remembered(dialect, row) for row in rows)
        # Replaced as a whole: another thread may read the last answer while this one makes the next.
        question = (dialect, *values.values())
        before = self._last.get(question, {})
        records = tuple(before.get(row) or self._rows.record(dialect, row) for row in rows)
        if records:
            self._last[question] = dict(zip(rows, records, strict=True))
        else:
            self._last.pop(question, None)
        return records

    def first(self, tx: ReadTransaction, **values: object) -> _Record | None:
        found = self.all(tx, **values)
        return found[0] if found else None


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
        self._statement = statement
        self._column = column
        self._prepared: dict[int, PreparedStatement] = {}
        self._rows = _RowRecords(statement, make)
        self._record = functools.lru_cache(maxsize=remember)(self._rows.record)

    def all(self, tx: ReadTransaction, ids: Iterable[object]) -> tuple[_Record, ...]:
        """The records of these ids, in no order where the ids are many."""
        dialect = self._rows.prepare(tx.dialect)
        rest = list(dict.fromkeys(ids))
        found: list[_Record] = []
        while rest:
            size = next((size for size in _SIZES if size >= len(rest)), _SIZES[-1])
            some, rest = rest[:size], rest[size:]
            # The last id once more is the same row.
            filled = (*some, *(some[-1:] * (size - len(some))))
            rows = tx.rows(self._statement_for(size), {f"id{number}": id for number, id in enumerate(filled)})
            found += [self._record(dialect, row) for row in rows]
        return tuple(found)

    def _statement_for(self, size: int) -> PreparedStatement:
        """Made when it is first needed: most queries never have many ids, and 500 take time and memory."""
        if size not in self._prepared:
            named = [bindparam(f"id{number}", type_=self._column.type) for number in range(size)]
            self._prepared[size] = PreparedStatement(self._statement.where(self._column.in_(named)))
        return self._prepared[size]


def _converter(type: TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    """Numbers and plain text come from every driver as they are; our own types and enums are converted."""
    if not isinstance(type, TypeDecorator | Enum):
        return None
    return type.dialect_impl(dialect).result_processor(dialect, None)
