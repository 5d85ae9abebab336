"""Limits what callers hold at once of something scarce, such as threads of long polls: each, and all but the person."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from legion.domain.agents.agent import ROOT
from legion.wire.errors import Retryable

_OF_THE_PERSON = 4
"""One part in so many that others leave to the person."""


class QuotaFull(Retryable):
    """`status` says whether the caller itself holds too much (429), or all of them do (503)."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Quota:
    """`each` limits every caller but the person, who may have all."""

    def __init__(self, what: str, most: int, *, each: int) -> None:
        self._what = what
        self._most = most
        self._each = each
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, caller: str, amount: int = 1) -> None:
        """Raises QuotaFull, and takes nothing then."""
        is_person = caller == ROOT
        own = self._most if is_person else self._each
        together = self._most if is_person else self._most - self._most // _OF_THE_PERSON
        with self._lock:
            if self._held[caller] + amount > own:
                why = f"{caller} has {own} {self._what} open, which is the most; close one and try again."
                raise QuotaFull(why, 429)
            if self._held.total() + amount > together:
                raise QuotaFull(f"There are too many {self._what} at once; try again in a moment.", 503)
            self._held[caller] += amount

    def give_back(self, caller: str, amount: int = 1) -> None:
        with self._lock:
            self._held[caller] -= amount
            if not self._held[caller]:
                del self._held[caller]


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
