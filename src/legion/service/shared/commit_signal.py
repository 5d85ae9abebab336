"""A signal after every commit, so that requests can wait for events without polling."""

from __future__ import annotations

import threading
import time

from legion.store import events
from legion.store.database.transactions import Store


class CommitSignal:
    """Wakes the waiting threads after every commit that recorded events."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._condition = threading.Condition()
        self._count = 0
        self._closed = False
        self._newest = (-1, 0)
        """The number of the last event, and the count at which it was read."""
        store.on_commit(self._notify)

    def _notify(self) -> None:
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def close(self) -> None:
        """Wake every waiting thread, because the daemon ends."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    @property
    def is_closed(self) -> bool:
        """Nothing is waited for any more: a loop that waits again would only use the processor."""
        return self._closed

    def last(self) -> int:
        """The number of the last event. Read once after a commit, however many threads ask."""
        with self._condition:
            count, (at, newest) = self._count, self._newest
        if at != count:
            with self._store.read() as tx:
                newest = events.last(tx)
            with self._condition:
                self._newest = max(self._newest, (count, newest))
        return newest

    def wait(self, after: int, timeout: float) -> bool:
        """Wait at most `timeout` seconds for an event later than `after`; return whether there is one."""
        deadline = time.monotonic() + timeout
        while True:
            with self._condition:
                seen = self._count
            if self.last() > after:
                return True
            if not self._changed(seen, deadline):
                return False

    def _changed(self, seen: int, deadline: float) -> bool:
        with self._condition:
            left = deadline - time.monotonic()
            self._condition.wait_for(lambda: self._count != seen or self._closed, max(0.0, left))
            return self._count != seen and not self._closed
