"""One head at a time on a Postgres: takes the lease, renews it, and ends this process when another head has it."""

from __future__ import annotations

import functools
import logging
import os
import platform
import signal
import threading
import time
from collections.abc import Callable

from legion.domain.errors import BadInput, StateConflict
from legion.store.database import head_lease
from legion.store.database.errors import LeaseHeld
from legion.store.database.head_lease import HeadLease, held_by, holder_name
from legion.store.database.transactions import Store
from legion.system import files, loops
from legion.system.paths import DataDir

log = logging.getLogger(__name__)

_RENEWALS = 3
"""Per lease: two may fail before it lapses."""
_PAUSE = 0.5


class FolderInUse(StateConflict):
    """Another daemon holds the lock of the data folder."""


def serve_in_turn(serve: Callable[[], None], report: Callable[[str], None], url: str) -> None:
    """Serve as soon as no other head does, and until this one is stopped."""
    if not url:
        raise BadInput(
            "A standby needs Postgres: move there with `legion machine head move postgresql://USER@HOST/NAME`."
        )
    reported = ""
    while True:
        try:
            serve()
            return
        except (FolderInUse, LeaseHeld) as held:
            if held.message != reported:
                reported = held.message
                report(f"Standby: {held.message}")
            time.sleep(_PAUSE)


class Leadership:
    """The head's right to write, from `start` to `stop`. On SQLite the lock of the data folder is all of it."""

    def __init__(self, url: str, data: DataDir, store: Store) -> None:
        """`url` of Postgres; empty: SQLite."""
        self._store = store
        self._data = data
        self._name = holder_name(platform.node(), data.root)
        self._lease = HeadLease(url, self._name) if url else None
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None
        self.failed: Callable[[str, Exception], object] = loops.only_logged
        """Gets each unexpected error of the renewal."""

    def start(self) -> None:
        """Take the lease and bring the tables up to date. Raises LeaseHeld, and StateConflict in another folder."""
        if self._lease is None:
            self._store.migrate()
            return
        if self._lease.is_held_by_other():
            self._refuse_other_folder()
            raise held_by(self._lease)
        self._store.migrate()
        self._refuse_other_folder()
        generation = self._lease.take()
        if generation is None:
            raise held_by(self._lease)
        self._store.fence(generation)
        # After the fence: processes that serve machines of this folder follow the head by this file.
        files.write_atomic(self._data.head_generation, str(generation))
        keep = functools.partial(_keep, self._lease, self._ended)
        self._keeper = loops.lasting(
            keep, name="head-lease", stopped=self._ended.wait, failed=lambda name, error: self.failed(name, error)
        )
        self._keeper.start()

    def _refuse_other_folder(self) -> None:
        """Hubs, runs and certificates of this database are in the folder of the head before this one."""
        with self._store.read() as tx:
            last, holder = head_lease.last(tx)
        # A head that was killed between the lease and the file has the same name.
        if last and holder != self._name and self._data.generation_of_head != last:
            raise StateConflict(
                f"This database belongs to another data folder than {self._data.root}: {holder} served it last. Name "
                "that folder with --data-dir, on a file system that both hosts mount."
            )

    def stop(self) -> None:
        """Release the lease, so that the next head need not wait."""
        self._ended.set()
        if self._keeper is not None:
            self._keeper.join()
        if self._lease is not None:
            self._lease.close()


def _keep(lease: HeadLease, ended: threading.Event) -> None:
    """Without an answer of the database nothing is lost: no transaction of a replaced head commits."""
    while not ended.wait(lease.seconds / _RENEWALS):
        renewed = lease.renew()
        if renewed is None:
            log.warning("head lease: the database did not answer, will retry")
        elif not renewed:
            log.error("head lease: another head has taken over, this one ends")
            os.kill(os.getpid(), signal.SIGTERM)
            return
