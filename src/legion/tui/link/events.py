"""Follows the stream of events in a thread and hands them to the loop in batches."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable

from legion.client.legion import Legion
from legion.wire.errors import LegionError
from legion.wire.tickets import EventLine

COALESCE = 0.1
"""Seconds within which events are handed over together."""


class EventThread:
    """One stream. It ends with its connection; its owner makes the next one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, legion: Legion, after: int) -> None:
        self._loop = loop
        self._legion = legion
        self._after = after
        self._stopped = False
        self._context = contextvars.copy_context()
        """That of the loop: Textual finds its app in it, and a thread has none."""

    def start(
        self,
        on_events: Callable[[list[EventLine]], None],
        on_heartbeat: Callable[[], None],
        on_end: Callable[[str], None],
    ) -> None:
        """The callbacks run on the loop; none comes after `stop`."""
        self._on_events, self._on_heartbeat, self._on_end = on_events, on_heartbeat, on_end
        self._batch: list[EventLine] = []
        threading.Thread(target=self._follow, daemon=True, name="events").start()

    def stop(self) -> None:
        self._stopped = True

    def _follow(self) -> None:
        why = "The stream of events ended."
        try:
            for event in self._legion.events(self._after):
                if self._stopped:
                    return
                self._call(self._take, event)
        except LegionError as error:
            why = error.message
        self._call(self._end, why)

    def _call(self, callback: Callable[..., None], argument: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, argument, context=self._context)
        except RuntimeError:
            # The loop has ended, and this thread ends with the process.
            self._stopped = True

    def _take(self, event: EventLine | None) -> None:
        if self._stopped:
            return
        if event is None:
            self._on_heartbeat()
            return
        if not self._batch:
            self._loop.call_later(COALESCE, self._hand_over)
        self._batch.append(event)

    def _hand_over(self) -> None:
        batch, self._batch = self._batch, []
        if batch and not self._stopped:
            self._on_events(batch)

    def _end(self, why: str) -> None:
        self._hand_over()
        if not self._stopped:
            self._stopped = True
            self._on_end(why)
