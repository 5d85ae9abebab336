"""Notifications between heads on one Postgres: a commit of one wakes the listeners of the others, by LISTEN and NOTIFY.

A lost notification only costs time, since each head also looks by itself. Only heads on Postgres import this module.
"""

from __future__ import annotations

import functools
import logging
import secrets
import threading
from collections.abc import Callable

import psycopg

from legion.store.database.transactions import Store
from legion.system import loops

log = logging.getLogger(__name__)

_CHANNEL = "legion_heads"
_NOTIFY = "SELECT pg_notify(%s, %s)"
_LOOK = 0.5
"""Seconds after which an idle listener looks whether it should end."""
_PAUSE = 2.0
"""Seconds until a lost connection is opened again."""


class HeadNews:
    """Two threads, from `start` to `stop`: one sends what this head has committed, one reads what the others have."""

    def __init__(
        self,
        url: str,
        store: Store,
        *,
        on_run: Callable[[str], None],
        has_others: Callable[[], bool] = lambda: True,
        failed: Callable[[str, Exception], object] = loops.only_logged,
    ) -> None:
        """`on_run` is called with the name of a run whose files or state another head has changed.

        Nothing is sent while `has_others` is false. `failed` gets each unexpected error.
        """
        self._conninfo = f"postgresql://{url.partition('://')[2]}"
        self._store = store
        self._on_run = on_run
        self._has_others = has_others
        self._me = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._unsent: set[str] = set()
        """Names of runs; empty: any other commit."""
        self._wake = threading.Event()
        self._stopping = threading.Event()
        lasting = functools.partial(loops.lasting, stopped=self._stopping.wait, failed=failed)
        self._listener = lasting(self._keep(self._listen), name="head-news")
        self._sender = lasting(self._keep(self._send), name="head-news-out")

    def start(self) -> None:
        self._store.on_commit(self._committed)
        self._listener.start()
        self._sender.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        for thread in (self._listener, self._sender):
            if thread.ident is not None:
                thread.join()

    def run_changed(self, run: str) -> None:
        """In any thread: this head has added to a file of the run, or changed its row."""
        with self._lock:
            self._unsent.add(run)
        self._wake.set()

    def _committed(self) -> None:
        # News of another head need not be sent back to it.
        if threading.current_thread() is not self._listener:
            self.run_changed("")

    def _keep(self, work: Callable[[psycopg.Connection], None]) -> Callable[[], None]:
        def repeat() -> None:
            while not self._stopping.is_set():
                try:
                    with psycopg.connect(self._conninfo, autocommit=True) as connection:
                        work(connection)
                except psycopg.Error as lost:
                    log.warning("news of other heads: the database did not answer, will retry: %s", lost)
                    self._stopping.wait(_PAUSE)

        return repeat

    def _listen(self, connection: psycopg.Connection) -> None:
        connection.execute(f"LISTEN {_CHANNEL}")
        # What was sent while nothing listened.
        self._store.tell()
        while not self._stopping.is_set():
            for notice in connection.notifies(timeout=_LOOK):
                if self._stopping.is_set():
                    return
                sender, has_news, run = notice.payload.partition(" ")
                if sender == self._me or not has_news:
                    continue
                if run:
                    self._on_run(run)
                else:
                    self._store.tell()

    def _send(self, connection: psycopg.Connection) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._wake.clear()
            with self._lock:
                unsent, self._unsent = self._unsent, set()
            if self._stopping.is_set():
                # Without news: it only wakes the listener of this head.
                connection.execute(_NOTIFY, (_CHANNEL, self._me))
            elif self._has_others():
                for run in unsent:
                    connection.execute(_NOTIFY, (_CHANNEL, f"{self._me} {run}"))
