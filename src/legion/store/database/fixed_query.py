"""A select that is run often: compiled once per database, and each stored row made into a record once.

The rows come from the driver as they are stored. A row that was seen before gives the record that was made of it then,
so records must be immutable. The values of columns are converted by the same types as everywhere else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from sqlalchemy import Dialect, Enum, Row, Select, TypeDecorator
from sqlalchemy.types import TypeEngine

from legion.store.database.transactions import ReadTransaction

_Record = TypeVar("_Record")
Stored = SimpleNamespace | Row[Any]
"""A row with one attribute per column, from here or from a statement that SQLAlchemy ran."""


@dataclass(frozen=True, kw_only=True)
class _Compiled:
    """The statement for one kind of database."""

    text: str
    order: tuple[str, ...] | None
    """Names of the values in the order of the text; None where the driver takes them by name."""
    defaults: dict[str, Any]
    columns: tuple[tuple[str, Callable[[Any], Any] | None], ...]


class FixedQuery(Generic[_Record]):
    """`make` gets an object with one attribute per column. The values that vary are named by `bindparam`."""

    def __init__(self, statement: Select[Any], make: Callable[[SimpleNamespace], _Record], *, remember: int) -> None:
        self._statement = statement
        self._make = make
        self._compiled: dict[str, _Compiled] = {}
        self._record = functools.lru_cache(maxsize=remember)(self._make_record)

    def all(self, tx: ReadTransaction, **values: object) -> tuple[_Record, ...]:
        """The records in the order of the statement."""
        dialect = tx.dialect
        compiled = self._compiled.get(dialect.name) or self._compile(dialect)
        given: Any = {**compiled.defaults, **values}
        if compiled.order is not None:
            given = tuple(given[name] for name in compiled.order)
        return tuple(self._record(dialect.name, row) for row in tx.execute_text(compiled.text, given))

    def first(self, tx: ReadTransaction, **values: object) -> _Record | None:
        found = self.all(tx, **values)
        return found[0] if found else None

    def _compile(self, dialect: Dialect) -> _Compiled:
        compiled = self._statement.compile(dialect=dialect)
        order = tuple(compiled.positiontup or ()) if compiled.positional else None
        columns = tuple((column.name, _converter(column.type, dialect)) for column in self._statement.selected_columns)
        made = _Compiled(text=str(compiled), order=order, defaults=dict(compiled.params), columns=columns)
        self._compiled[dialect.name] = made
        return made

    def _make_record(self, dialect: str, row: tuple[Any, ...]) -> _Record:
        columns = self._compiled[dialect].columns
        values = {
            name: value if convert is None else convert(value)
            for (name, convert), value in zip(columns, row, strict=True)
        }
        return self._make(SimpleNamespace(**values))


def _converter(type: TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    """Numbers and plain text come from every driver as they are; our own types and enums are converted."""
    if not isinstance(type, TypeDecorator | Enum):
        return None
    return type.dialect_impl(dialect).result_processor(dialect, None)
