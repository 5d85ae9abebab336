"""Threads for long polls, one each, so that neither other requests nor the daemon's end wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from legion.wire.errors import Retryable

MOST_WAITING = 256

Result = TypeVar("Result")


class Waiters:
    """Runs blocking calls in threads that die with the process."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._free = threading.Semaphore(most)

    async def run(self, blocking: Callable[[], Result]) -> Result:
        if not self._free.acquire(blocking=False):
            raise Retryable("Too many clients are waiting at once; try again in a moment.")
        promise: Future[Result] = Future()
        promise.set_running_or_notify_cancel()
        threading.Thread(target=self._work, args=(blocking, promise), daemon=True, name="long poll").start()
        return await asyncio.wrap_future(promise)

    def _work(self, blocking: Callable[[], Result], promise: Future[Result]) -> None:
        try:
            result = blocking()
        except BaseException as error:  # the request that waits for us raises it
            promise.set_exception(error)
        else:
            promise.set_result(result)
        finally:
            self._free.release()
