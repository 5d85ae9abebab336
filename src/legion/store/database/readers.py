"""Connections that read an SQLite file, kept open from one transaction to the next.

A ticket takes about forty short reads. SQLAlchemy takes longer to hand out a connection, begin and end than SQLite
takes to answer, so here a transaction is one BEGIN and one COMMIT on a connection that stays checked out.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import TimeoutError as NoConnection

_MOST_IDLE = 4
"""Each has a page cache of its own."""


class SqliteReaders:
    """At most `most` transactions at a time; another one waits for `patience` seconds."""

    def __init__(self, engine: Engine, *, most: int, patience: float) -> None:
        self._engine = engine
        self._free = threading.Semaphore(most)
        self._patience = patience
        self._idle: list[Connection] = []
        self._closed = False

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One moment of the database, for one thread."""
        if not self._free.acquire(timeout=self._patience):
            raise NoConnection(f"no connection became free within {self._patience:g} s")
        try:
            connection = self._take()
            try:
                driver = driver_of(connection)
                driver.execute("BEGIN")
                yield connection
                if connection.in_transaction():
                    connection.commit()
                else:
                    driver.commit()
            except BaseException:
                # Its state may be unknown, and errors are rare.
                connection.close()
                raise
            self._put_back(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close the idle ones now and those in use at their end."""
        self._closed = True
        while (connection := self._pop()) is not None:
            connection.close()

    def _take(self) -> Connection:
        return self._pop() or self._engine.connect()

    def _pop(self) -> Connection | None:
        """The one that was used last: another thread may take it between a look and the taking."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _put_back(self, connection: Connection) -> None:
        if len(self._idle) >= _MOST_IDLE:
            connection.close()
            return
        self._idle.append(connection)
        if self._closed:
            self.close()


def driver_of(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver
