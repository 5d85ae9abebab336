"""The database connection and its transactions.

One writer at a time on both databases: SQLite begins with BEGIN IMMEDIATE, Postgres locks the event counter's row
first. So what a writer has read stays true until it commits, and event numbers have no gaps and follow the commits.
Readers see one moment and block no writer. This file knows no tables but the counters and the events.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    Dialect,
    Engine,
    Executable,
    bindparam,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import CursorResult
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.pool import NullPool
from sqlalchemy.util import LRUCache

from legion.domain.events import EventKind
from legion.store.database import errors, migrations, schema
from legion.store.database.prepared import PreparedStatement, inserting
from legion.store.database.readers import Readers, driver_of
from legion.system import crash
from legion.system.crash import Point

PATIENCE = 30.0
"""Seconds to wait for the writer."""

_MOST_READERS = 16
"""Of one process, at a time."""
_READER_CACHE = 512
"""KB of pages that a reader of SQLite keeps."""
_Answer = TypeVar("_Answer")

_COUNTER = schema.counters.c
_NEXT = PreparedStatement(
    update(schema.counters)
    .where(_COUNTER.name == bindparam("counter"))
    .values(value=_COUNTER.value + 1)
    .returning(_COUNTER.value)
)
_RECORD = inserting(schema.events)
_LOCK = PreparedStatement(select(_COUNTER.name).where(_COUNTER.name == "event").with_for_update())
_LAST_HEAD = PreparedStatement(select(schema.head_leases.c.generation))


class _SameDialect(SQLiteDialect_pysqlite):
    """Those of all engines count as one: what is compiled for one file holds for the others."""

    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register("sqlite.legion", __name__, _SameDialect.__name__)
_COMPILED: LRUCache[Any, Any] = LRUCache(500)
"""Statements on files, of this whole process."""


class ReadTransaction:
    """One moment of the database."""

    def __init__(self, connection: Connection, now: float) -> None:
        self._connection = connection
        self.now = now
        """The time of everything that happens in this transaction."""

    def execute(
        self, statement: Executable, values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> CursorResult[Any]:
        return self._connection.execute(statement, values)

    @property
    def dialect(self) -> Dialect:
        return self._connection.dialect

    def rows(self, statement: PreparedStatement, values: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Rows as the driver returns them."""
        return self._run(statement, values, lambda cursor: list(cursor.fetchall()))

    def _run(
        self, statement: PreparedStatement, values: Mapping[str, object], answer: Callable[[DBAPICursor], _Answer]
    ) -> _Answer:
        dialect = self._connection.dialect
        text, given = statement.bound(dialect, values)
        cursor = self._connection.connection.cursor()
        try:
            cursor.execute(text, given)
            return answer(cursor)
        except dialect.loaded_dbapi.Error as error:
            # As SQLAlchemy raises it, so that it is translated for people in one place.
            raise DBAPIError.instance(text, None, error, dialect.loaded_dbapi.Error, dialect=dialect) from error
        finally:
            cursor.close()


class Transaction(ReadTransaction):
    """The right to write: all of it happens, with its events, or nothing."""

    def __init__(self, connection: Connection, now: float) -> None:
        super().__init__(connection, now)
        self.tells = False
        """Are listeners notified after the commit?"""
        self.taken_back = False
        """Does the block end without a commit?"""

    def next(self, counter: str) -> int:
        """The next number of this counter; a rollback gives it back."""
        ((number,),) = self.rows(_NEXT, {"counter": counter})
        return int(number)

    def run(self, statement: PreparedStatement, values: Mapping[str, object]) -> int:
        """How many rows the statement wrote."""
        return self._run(statement, values, lambda cursor: int(cursor.rowcount))

    def record(
        self,
        kind: EventKind,
        *,
        project: int | None = None,
        ticket: int | None = None,
        data: Mapping[str, object] | None = None,
    ) -> int:
        """Write down what happened. Answers with the event's number."""
        number = self.next("event")
        row = {
            "n": number,
            "at": self.now,
            "kind": kind,
            "project": project,
            "ticket": ticket,
            "data": dict(data or {}),
        }
        self.run(_RECORD, row)
        self.tell()
        return number

    def tell(self) -> None:
        """Notify listeners after the commit, even without an event."""
        self.tells = True

    def take_back(self) -> None:
        """Leave nothing at the end of the block: what was written was only to be looked at."""
        self.taken_back = True


class Store:
    """The database behind a URL. Many threads may use it; a process that forks opens its own."""

    def __init__(
        self, url: str, *, clock: Callable[[], float] = time.time, patience: float = PATIENCE, durable: bool = True
    ) -> None:
        """Without `durable`, a power cut may lose the last commits of a file; the end of a process loses none."""
        parsed = parse_url(url)
        self.place = parsed.database or "" if _is_sqlite(parsed) else parsed.render_as_string(hide_password=True)
        """The database as errors name it: the file, or the URL without its password."""
        self._clock = clock
        self._writer = _open(parsed, writing=True, patience=patience, durable=durable)
        self._reader = _open(parsed, writing=False, patience=patience)
        self._readers = Readers(self._reader, most=_MOST_READERS, patience=patience)
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._listening = threading.Lock()
        self._inside = threading.local()
        self._generation: int | None = None

    def fence(self, generation: int) -> None:
        """From now on, write only while this generation of the head's lease is the last one."""
        self._generation = generation
        # Whatever an earlier head was just writing is written before this.
        with self.write():
            pass

    def migrate(self, steps: Sequence[migrations.Migration] = migrations.SHIPPED) -> tuple[migrations.Migration, ...]:
        """Bring the tables up to date; says which steps that took."""
        with self._said_plainly():
            return migrations.apply(self._writer, steps, self.place, self._clock())

    def refuse_other_release(self) -> None:
        """For a process that leaves the tables to the head. Raises StoreTooNew or StateConflict."""
        with self._said_plainly():
            migrations.refuse_other(self._writer, migrations.SHIPPED, self.place)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Commits at the end of the block, or leaves nothing when the block raises or takes it back."""
        if getattr(self._inside, "writing", False):
            raise RuntimeError("write() inside write(): pass the transaction on instead.")
        self._inside.writing = True
        try:
            with self._said_plainly(), self._writer.begin() as connection:
                transaction = Transaction(connection, self._clock())
                _become_the_writer(transaction)
                _refuse_replaced(transaction, self._generation)
                yield transaction
                if transaction.taken_back:
                    connection.rollback()
                    return
                crash.reach(Point.STORE_WRITE_BEFORE_COMMIT)
        finally:
            self._inside.writing = False
        crash.reach(Point.STORE_WRITE_AFTER_COMMIT)
        if transaction.tells:
            self.tell()

    @contextmanager
    def read(self) -> Iterator[ReadTransaction]:
        """One moment of the database. A read inside a read would take a second connection: enough threads that do so
        leave none for anyone."""
        if getattr(self._inside, "reading", False):
            raise RuntimeError("read() inside read(): pass the transaction on instead.")
        self._inside.reading = True
        try:
            with self._said_plainly(), self._readers.begin() as connection:
                yield ReadTransaction(connection, self._clock())
        finally:
            self._inside.reading = False

    def on_commit(self, listener: Callable[[], None]) -> None:
        """Call it after every commit that brought news, in the thread that wrote: it must be quick and thread-safe."""
        with self._listening:
            self._listeners = (*self._listeners, listener)

    @contextmanager
    def commits(self) -> Iterator[threading.Event]:
        """An event that is set after every commit that brought news, for the length of the block."""
        committed = threading.Event()
        self.on_commit(committed.set)
        try:
            yield committed
        finally:
            with self._listening:
                self._listeners = tuple(one for one in self._listeners if one != committed.set)

    def tell(self) -> None:
        """Notify all listeners, as after a commit: something outside the store has changed."""
        for listener in self._listeners:
            listener()

    def tables_in_order(self) -> list[str]:
        """The names of all tables; those that others refer to come first."""
        with self._readers.begin() as connection:
            return [name for name, _ in inspect(connection).get_sorted_table_and_fkc_names() if name is not None]

    def close(self) -> None:
        self._readers.close()
        self._reader.dispose()
        self._writer.dispose()

    @contextmanager
    def _said_plainly(self) -> Iterator[None]:
        try:
            yield
        except NoConnection as error:
            raise errors.busy(self.place) from error
        except DBAPIError as error:
            plain = errors.translate(error, self.place)
            if plain is None:
                raise
            raise plain from error


def sqlite_url(file: Path) -> str:
    return URL.create("sqlite", database=str(file)).render_as_string()


def database_file(url: str) -> Path | None:
    """The file behind a URL; None where it names a server."""
    parsed = parse_url(url)
    return Path(parsed.database or "") if _is_sqlite(parsed) else None


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def parse_url(url: str) -> URL:
    """Raises UnknownDatabase for what is no URL of a database."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise errors.UnknownDatabase(
            "This is no database URL: use sqlite:///FILE or postgresql://USER@HOST/NAME."
        ) from None
    backend = parsed.drivername.partition("+")[0]
    if backend == "sqlite" and parsed.database not in (None, "", ":memory:"):
        return parsed.set(drivername="sqlite+legion")
    if backend in ("postgres", "postgresql"):
        return parsed.set(drivername="postgresql+psycopg")
    raise errors.UnknownDatabase(
        f"Legion cannot keep its data in {backend}: use sqlite:///FILE or postgresql://USER@HOST/NAME."
        if backend != "sqlite"
        else "Legion keeps its data in a file, and this URL names none: use sqlite:///FILE."
    )


def _open(url: URL, *, writing: bool, patience: float, durable: bool = True) -> Engine:
    """One connection for the writer, since there is only one at a time, and some for the readers."""
    # All connections to Postgres stay open: a new process costs more than most reads. `Readers` keeps those to a file.
    pool: dict[str, Any] = (
        {"poolclass": NullPool}
        if _is_sqlite(url) and not writing
        else {"pool_timeout": patience, "pool_size": 1 if writing else _MOST_READERS, "max_overflow": 0}
    )
    options = {"compiled_cache": _COMPILED} if _is_sqlite(url) else {}
    try:
        engine = create_engine(url, execution_options=options, pool_pre_ping=not _is_sqlite(url), **pool)
    except ModuleNotFoundError:
        raise errors.UnknownDatabase("Postgres needs one more package: install legionary[postgres].") from None
    if _is_sqlite(url):
        _keep_private(url)
        _listen_sqlite(engine, writing=writing, patience=patience, durable=durable)
    else:
        _listen_postgres(engine, patience=patience)
        if not writing:
            engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


def _keep_private(url: URL) -> None:
    """The folder may be one that others can read; SQLite gives its side files the rights of the file."""
    if url.database:
        # Opening the file reports what is wrong with it.
        with contextlib.suppress(OSError):
            os.close(os.open(url.database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            Path(url.database).chmod(0o600)


def _listen_sqlite(engine: Engine, *, writing: bool, patience: float, durable: bool) -> None:
    def connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
        connection.execute("PRAGMA foreign_keys = ON")
        if writing:
            connection.execute("PRAGMA journal_mode = WAL")
            # NORMAL may lose the last commits at a power cut.
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        else:
            connection.execute("PRAGMA query_only = ON")
            # Every commit empties the caches of all readers, so a large one would only take memory.
            connection.execute(f"PRAGMA cache_size = -{_READER_CACHE}")

    def begun(connection: Connection) -> None:
        if writing:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        elif not (driver := driver_of(connection)).in_transaction:
            driver.execute("BEGIN")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)


def _listen_postgres(engine: Engine, *, patience: float) -> None:
    def connected(connection: DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SET lock_timeout = {int(patience * 1000)}")
        cursor.execute("SET synchronous_commit = on")
        cursor.close()
        connection.commit()

    event.listen(engine, "connect", connected)


def _refuse_replaced(tx: Transaction, generation: int | None) -> None:
    if generation is not None and tx.rows(_LAST_HEAD, {}) != [(generation,)]:
        raise errors.HeadReplaced("Another head serves this database now, so this one ends: see `legion status`.")


def _become_the_writer(tx: Transaction) -> None:
    """Wait for the others. A statement of its own: what is read after it sees everything they committed."""
    if tx.dialect.name == "postgresql":
        tx.rows(_LOCK, {})
