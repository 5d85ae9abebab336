"""Wakes the beats of machines that wait for news of the head."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Mapping

from fastapi.concurrency import run_in_threadpool

from legion.service.machines.dial_in import DialIn, MachineNews
from legion.wire.errors import LegionError

log = logging.getLogger(__name__)

LOOK_AGAIN = 1.0
"""Seconds between two looks for news without a signal. A machine that another head removed is out within them."""


class NewsBell:
    """Wakes the beats of machines that have news. One look after a commit serves all that wait on this event loop."""

    def __init__(self, head: DialIn) -> None:
        self._head = head
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[asyncio.Event, int] = {}
        self._known: Mapping[int, MachineNews] = {}
        self._looking: asyncio.Task[None] | None = None
        self._again = False
        self._looked_at = 0.0
        head.store.on_commit(self._committed)

    @contextlib.asynccontextmanager
    async def listening(self, machine: int) -> AsyncIterator[asyncio.Event]:
        self._loop = asyncio.get_running_loop()
        event = asyncio.Event()
        self._waiting[event] = machine
        try:
            yield event
        finally:
            del self._waiting[event]

    def look_if_due(self) -> None:
        """Another head, or a queue that did not answer, gives no signal."""
        if time.monotonic() - self._looked_at >= LOOK_AGAIN / 2:
            self._look()

    def _committed(self) -> None:
        loop = self._loop
        if loop is not None:
            # The loop has ended with the daemon.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self._again = True
        if self._waiting and (self._looking is None or self._looking.done()):
            self._looking = asyncio.get_running_loop().create_task(self._ring())

    async def _ring(self) -> None:
        while self._again:
            self._again = False
            self._looked_at = time.monotonic()
            try:
                news = await run_in_threadpool(self._head.news)
            except LegionError as trouble:
                log.warning("no look for news of machines, will retry: %s", trouble.message)
                return
            for event, machine in self._waiting.items():
                now = news.get(machine)
                if now is None or now.has_waiting or now != self._known.get(machine):
                    event.set()
            self._known = news
