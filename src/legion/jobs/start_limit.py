"""Limits how many threads prepare and start runs at the same time.

Threads that share the interpreter delay each other: of thirty starts at once, the first would come about when half of
them are ready. A few at a time start one after the other instead, and the last is not later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_AT_ONCE = 3
_HELD_FOR = 0.25
"""Seconds after which a holder no longer counts: its [setup] installs something, and others need not wait for that."""


class StartLimit:
    def __init__(self, at_once: int = _AT_ONCE, held_for: float = _HELD_FOR) -> None:
        self._at_once = at_once
        self._held_for = held_for
        self._condition = threading.Condition()
        self._holders: dict[object, float] = {}
        """When each of them entered, oldest first."""

    @contextmanager
    def hold(self) -> Iterator[None]:
        holder = object()
        with self._condition:
            while (seconds := self._until_free()) > 0:
                self._condition.wait(seconds)
            self._holders[holder] = time.monotonic()
        try:
            yield
        finally:
            with self._condition:
                del self._holders[holder]
                self._condition.notify()

    def _until_free(self) -> float:
        now = time.monotonic()
        counted = [left for since in self._holders.values() if (left := since + self._held_for - now) > 0]
        return 0.0 if len(counted) < self._at_once else counted[0]
