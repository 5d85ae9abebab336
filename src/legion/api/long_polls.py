"""Threads for long polls, one each, so that neither other requests nor the daemon's end wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from legion.api.quota import Quota

MOST_WAITING, MOST_OF_ONE = 256, 32

Result = TypeVar("Result")


class Waiters:
    """Runs blocking calls in threads that die with the process."""

    def __init__(self) -> None:
        self._quota = Quota("waiting requests", MOST_WAITING, each=MOST_OF_ONE)

    async def run(self, caller: str, blocking: Callable[[], Result]) -> Result:
        """Raises QuotaFull. A client that has left counts until its call returns."""
        self._quota.take(caller)
        promise: Future[Result] = Future()
        promise.set_running_or_notify_cancel()
        threading.Thread(target=self._work, args=(caller, blocking, promise), daemon=True, name="long poll").start()
        return await asyncio.wrap_future(promise)

    def _work(self, caller: str, blocking: Callable[[], Result], promise: Future[Result]) -> None:
        try:
            result = blocking()
        except BaseException as error:  # the request that waits for us raises it
            promise.set_exception(error)
        else:
            promise.set_result(result)
        finally:
            self._quota.give_back(caller)
