"""A statement that is compiled once per kind of database. Running it then costs little more than the driver itself.

Compiling and caching by SQLAlchemy takes several times as long as the statements that every ticket needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Dialect, Insert, Table, bindparam, insert, update
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement, ColumnElement

_Binder = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class _Compiled:
    """The statement for one kind of database."""

    text: str
    order: tuple[str, ...] | None
    """Names of the values in the order of the text; None where the driver takes them by name."""
    fixed: dict[str, Any]
    """The values that the statement itself contains, as the driver takes them."""
    binders: dict[str, _Binder]


class PreparedStatement:
    """The values that vary are named by `bindparam`; those of an insert by the columns that are set."""

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._compiled: dict[tuple[str, ...], _Compiled] = {}

    def bound(self, dialect: Dialect, values: Mapping[str, object]) -> tuple[str, Any]:
        """The text in the driver's own language, and the values for it."""
        names = tuple(values) if isinstance(self._statement, Insert) else ()
        compiled = self._compiled.get((dialect.name, *names)) or self._compile(dialect, names)
        given: dict[str, Any] = {**compiled.fixed, **values}
        for name, bind in compiled.binders.items():
            if name in values:
                given[name] = bind(given[name])
        if compiled.order is None:
            return compiled.text, given
        return compiled.text, tuple(given[name] for name in compiled.order)

    def _compile(self, dialect: Dialect, names: tuple[str, ...]) -> _Compiled:
        compiled = self._compile_plain(dialect, names)
        binders: dict[str, _Binder] = {
            name: binder
            for name, bind in compiled.binds.items()
            if (binder := bind.type.dialect_impl(dialect).bind_processor(dialect)) is not None
        }
        made = _Compiled(
            text=str(compiled),
            order=tuple(compiled.positiontup or ()) if compiled.positional else None,
            fixed={
                name: _as_stored(bind.value, binders.get(name))
                for name, bind in compiled.binds.items()
                if not bind.required
            },
            binders=binders,
        )
        self._compiled[dialect.name, *names] = made
        return made

    def _compile_plain(self, dialect: Dialect, names: tuple[str, ...] = ()) -> SQLCompiler:
        compiled = self._statement.compile(dialect=dialect, column_keys=list(names) or None)
        assert isinstance(compiled, SQLCompiler)
        return compiled


def inserting(table: Table) -> PreparedStatement:
    """Insert one row; its values are named like the columns."""
    return PreparedStatement(insert(table).inline())


def updating(table: Table, *where: ColumnElement[bool], columns: Collection[str]) -> PreparedStatement:
    """Set these columns of the rows found by `where`; the new values are named by `new`."""
    changed: dict[str, BindParameter[Any]] = {
        name: bindparam(f"new_{name}", type_=table.c[name].type) for name in columns
    }
    return PreparedStatement(update(table).where(*where).values(changed))


def new(values: Mapping[str, object]) -> dict[str, object]:
    """The values of `updating`."""
    return {f"new_{name}": value for name, value in values.items()}


def _as_stored(value: object, binder: _Binder | None) -> object:
    return value if binder is None or value is None else binder(value)
