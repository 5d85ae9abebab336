"""Connections that read the database, kept open from one transaction to the next.

A ticket takes about forty short reads. SQLAlchemy takes longer to hand out a connection, begin and end than the
database takes to answer, so here a connection stays checked out: SQLite gets one BEGIN and one COMMIT for each
transaction, and Postgres begins with the first statement.
"""

from __future__ import annotations

import select
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import TimeoutError as NoConnection

_MOST_IDLE_ON_FILE = 4
"""Each has a page cache and prepared statements of its own, up to 3 MB; the others are closed after a rush. A
connection to a server costs more to open than to keep."""
_TRUSTED = 5.0
"""Seconds for which an idle connection is taken as it is. After that the server is asked: a host that is gone says
nothing."""


class Readers:
    """At most `most` transactions at a time; another one waits for `patience` seconds."""

    def __init__(self, engine: Engine, *, most: int, patience: float) -> None:
        self._engine = engine
        self._free = threading.Semaphore(most)
        self._patience = patience
        self._on_file = engine.dialect.name == "sqlite"
        self._most_idle = _MOST_IDLE_ON_FILE if self._on_file else most
        self._idle: list[tuple[Connection, float]] = []
        self._closed = False

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One moment of the database, for one thread."""
        if not self._free.acquire(timeout=self._patience):
            raise NoConnection(f"no connection became free within {self._patience:g} s")
        try:
            connection = self._take()
            driver: Any = connection.connection.driver_connection
            try:
                if self._on_file:
                    driver.execute("BEGIN")
                yield connection
                if connection.in_transaction():
                    connection.commit()
                else:
                    driver.commit()
            except BaseException:
                # Its state may be unknown, and errors are rare.
                self._give_up(connection, driver)
                raise
            self._put_back(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close the idle ones now and those in use at their end."""
        self._closed = True
        self._close_idle()

    def _take(self) -> Connection:
        while (found := self._pop()) is not None:
            connection, since = found
            if self._on_file or _is_fresh(connection, since) or self._answers(connection):
                return connection
            connection.invalidate()
            connection.close()
        return self._engine.connect()

    def _answers(self, connection: Connection) -> bool:
        try:
            driver = connection.connection.dbapi_connection
            return driver is not None and bool(self._engine.dialect.do_ping(driver))
        except self._engine.dialect.loaded_dbapi.Error:
            return False

    def _give_up(self, connection: Connection, driver: Any) -> None:  # noqa: ANN401 - of either driver
        if not self._on_file and driver.closed:
            # The server is away, or was: the others are lost with this one.
            self._close_idle()
            connection.invalidate()
        connection.close()

    def _close_idle(self) -> None:
        while (found := self._pop()) is not None:
            found[0].close()

    def _pop(self) -> tuple[Connection, float] | None:
        """The one that was used last: another thread may take it between a look and the taking."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _put_back(self, connection: Connection) -> None:
        if len(self._idle) >= self._most_idle:
            connection.close()
            return
        self._idle.append((connection, time.monotonic()))
        if self._closed:
            self._close_idle()


def _is_fresh(connection: Connection, since: float) -> bool:
    """It was in use a moment ago, and the server has sent nothing since: it says so when it ends a connection."""
    driver: Any = connection.connection.driver_connection
    waiting = select.poll()
    waiting.register(driver.fileno(), select.POLLIN)
    return time.monotonic() - since < _TRUSTED and not waiting.poll(0)


def driver_of(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver
