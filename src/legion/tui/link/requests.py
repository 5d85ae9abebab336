"""Sends requests to the daemon off the UI's loop, each in a thread of its own with a time limit.

The threads are daemon threads: quitting never waits for a daemon that does not answer.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from legion.client.discovery import find, is_remote
from legion.client.http import ANSWER_TIMEOUT, DaemonConnection, NotRunning, Query
from legion.client.legion import Legion
from legion.tui.link.connection import Connection, Phase

Answer = TypeVar("Answer")

PATIENCE = 45.0
"""Seconds after which a request is given up."""
_TICK = 0.25


class ImpatientConnection(DaemonConnection):
    """As the client's, but no request of a screen waits for minutes."""

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        timeout: float = ANSWER_TIMEOUT,
        accept: str = "",
    ) -> Any:  # noqa: ANN401 - the JSON of the answer
        limit = PATIENCE if timeout == ANSWER_TIMEOUT else timeout
        return super().ask(method, path, query=query, body=body, timeout=limit, accept=accept)


def connected(data_dir: Path, *, start: bool) -> Legion:
    """The daemon, started if that is wanted and it is not running."""
    try:
        legion = find(data_dir)
    except NotRunning:
        if not start or is_remote():
            raise
        # Starting needs more imports than asking.
        from legion.client.start import start as start_daemon

        legion = start_daemon(data_dir)
    return Legion(legion.address, ImpatientConnection(legion.address))


class Requests:
    """One for the whole UI. Its methods are called on the loop; `on_change` reports every change of the connection."""

    def __init__(
        self, data_dir: Path, on_change: Callable[[], None], *, start: bool = True, legion: Legion | None = None
    ) -> None:
        """`legion` was found before the loop ran."""
        self.data_dir = data_dir
        self.connection = Connection()
        self._on_change = on_change
        self._legion = legion
        # One that answered already and is gone later was stopped by a person.
        self._start = start and legion is None
        self._number = 0
        self._shown = Phase.CONNECTING

    @property
    def phase(self) -> Phase:
        return self.connection.phase(time.monotonic())

    @property
    def legion(self) -> Legion | None:
        """The daemon that answered last; None where it was lost."""
        return self._legion

    def start_next_time(self) -> None:
        """A person asked for it: the next request may start a daemon."""
        self._start = True

    async def ask(self, call: Callable[[Legion], Answer], *, counts: bool = True) -> Answer:
        """The answer, or the error that the daemon or the client raised.

        `counts` is False for a request that waits on purpose: it does not make the connection look slow.
        """
        self._number += 1
        number = self._number
        if counts:
            self._now(self.connection.sent(number, time.monotonic()))
        try:
            answer = await in_thread(lambda: call(self._reached()))
        except NotRunning as lost:
            self._legion = None
            self._now(self.connection.lost(number, time.monotonic(), lost.message))
            raise
        except asyncio.CancelledError:
            self._now(self.connection.without(number))
            raise
        except Exception:  # a refusal, or a fault of ours: either way the daemon was reached; the caller shows it
            self._now(self.connection.answered(number, time.monotonic()))
            raise
        self._now(self.connection.answered(number, time.monotonic()))
        return answer

    def lost(self, why: str) -> None:
        """The stream of events broke."""
        self._legion = None
        self._now(self.connection.lost(None, time.monotonic(), why))

    def heard(self) -> None:
        self.connection = self.connection.heard(time.monotonic())

    async def keep_watch(self) -> None:
        """Shows a slow daemon in time, and asks a quiet one for a sign of life."""
        while True:
            await asyncio.sleep(_TICK)
            if self.connection.needs_sign_of_life(time.monotonic()):
                await self._sign_of_life()
            if self.phase is not self._shown:
                self._now(self.connection)

    async def _sign_of_life(self) -> None:
        asked = asyncio.ensure_future(self.ask(lambda legion: legion.healthy()))
        while not asked.done():
            await asyncio.wait({asked}, timeout=_TICK)
            if self.phase is not self._shown:
                self._now(self.connection)
        # Its result is in the connection's state already.
        asked.exception()

    def _reached(self) -> Legion:
        """In the thread of a request."""
        if self._legion is None:
            self._legion = connected(self.data_dir, start=self._start)
            self._start = False
        return self._legion

    def _now(self, connection: Connection) -> None:
        self.connection = connection
        if self.phase is not self._shown:
            self._shown = self.phase
            self._on_change()


async def in_thread(work: Callable[[], Answer]) -> Answer:
    """The result of blocking work. The executor of asyncio would be waited for at the end; this thread is not."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Answer] = loop.create_future()

    def settle(result: Answer | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # the result of `work`

    def run() -> None:
        result, failed = None, None
        try:
            result = work()
        except Exception as error:  # handed to the loop, which raises it where the work was asked for
            failed = error
        try:
            loop.call_soon_threadsafe(settle, result, failed)
        except RuntimeError:
            # The loop ended before the answer came.
            return

    threading.Thread(target=run, daemon=True, name="request").start()
    return await done
