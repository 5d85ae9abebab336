"""Follows events as they happen, across restarts of the daemon."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from legion.client.discovery import find
from legion.wire.errors import LegionError
from legion.wire.tickets import EventLine

_RECONNECT = 0.2


class EventFollower:
    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._queue: queue.SimpleQueue[EventLine] = queue.SimpleQueue()
        self._last = 0
        self._over = threading.Event()
        threading.Thread(target=self._listen, daemon=True, name="events").start()

    def wait(self, seconds: float) -> Iterator[EventLine]:
        """Events since the last call; waits for the first one."""
        with suppress(queue.Empty):
            yield self._take(self._queue.get(timeout=seconds))
            while True:
                yield self._take(self._queue.get_nowait())

    def caught_up(self, last: int) -> bool:
        return self._last >= last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()

    def _take(self, event: EventLine) -> EventLine:
        self._last = event.n
        return event

    def _listen(self) -> None:
        last = 0
        while not self._over.is_set():
            with suppress(LegionError):
                for event in find(self._data_dir).events(last):
                    if event is not None:
                        last = event.n
                        self._queue.put(event)
            self._over.wait(_RECONNECT)
