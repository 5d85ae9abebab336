"""Takes the control requests of a run as they arrive, and handles each in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from legion.drivers import ControlRequest, ControlRequests

Handler = Callable[[ControlRequest], Coroutine[Any, Any, None]]


class RequestTasks:
    """The open requests of a run, and other work that must not delay it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def listening(self, asks: ControlRequests, handle: Handler) -> Iterator[None]:
        """Inside, one task per request is started, in the order of arrival."""

        def take() -> None:
            for ask in asks.take():
                self.spawn(handle(ask))

        loop = asyncio.get_running_loop()
        loop.add_reader(asks.fileno(), take)
        try:
            yield
        finally:
            loop.remove_reader(asks.fileno())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
