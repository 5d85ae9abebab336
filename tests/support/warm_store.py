"""What a daemon's store makes when it first needs it, made before the daemons are forked."""

from __future__ import annotations

import contextlib
import gc
import tempfile
from pathlib import Path
from typing import Any

from legion.store.database.fixed_query import FixedQuery, QueryByIds
from legion.store.database.prepared import PreparedStatement
from legion.store.database.transactions import ReadTransaction, Store, sqlite_url
from legion.store.work import runs
from tests.store.making import add_project, add_ticket


def compile_statements() -> None:
    """Else every daemon compiles each of its fixed statements again."""
    found = [one for one in gc.get_objects() if isinstance(one, FixedQuery | QueryByIds | PreparedStatement)]
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Store(sqlite_url(Path(folder, "db")))) as store:
        store.migrate()
        with store.read() as tx:
            for one in found:
                # It misses its values only after it is compiled.
                with contextlib.suppress(KeyError):
                    _try(one, tx)
        # An insert is compiled for the columns that it sets.
        with store.write() as tx:
            runs.start(tx, add_ticket(tx, add_project(tx).id).id, attempt=1)


def _try(one: FixedQuery[Any] | QueryByIds[Any] | PreparedStatement, tx: ReadTransaction) -> None:
    if isinstance(one, FixedQuery):
        one.all(tx)
    elif isinstance(one, QueryByIds):
        # For one id and for several there are two statements.
        for count in (1, 2):
            one.all(tx, range(count))
    else:
        one.bound(tx.dialect, {})
