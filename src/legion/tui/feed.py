"""A piece of the daemon's state that screens show: fetched when it is watched, again when an event concerns it.

Fetches never overlap, and the time between two grows with the time that one takes: a large board costs a bounded share
of a processor, however many events come.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.client.text.terminal import sanitize_lines
from legion.tui.link.requests import Requests
from legion.wire.errors import LegionError
from legion.wire.ticket_pages import LogText
from legion.wire.tickets import EventLine

Value = TypeVar("Value")

LEAST_PAUSE, MOST_PAUSE = 0.1, 5.0
_PAUSE_FACTOR = 5
"""Seconds of pause for each second that the last fetch took."""

Concerns = Callable[[EventLine], bool]
Watcher = Callable[[], None]


class Feed(Generic[Value]):
    def __init__(self, requests: Requests, fetch: Callable[[Legion], Value], concerns: Concerns) -> None:
        self._requests = requests
        self._fetch = fetch
        self._concerns = concerns
        self._watchers: list[Watcher] = []
        self._stale = True
        self._task: asyncio.Task[None] | None = None
        self._pause = LEAST_PAUSE
        self._fetched_at: float | None = None
        self.value: Value | None = None
        """None before the first answer."""
        self.trouble = ""
        """Why the last fetch failed, in one sentence; empty where it did not."""

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call it after every change, from now on; returns the function that ends this."""
        self._watchers.append(watcher)
        self._refresh_if_stale()

        def end() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return end

    def take(self, events: list[EventLine]) -> None:
        if any(self._concerns(event) for event in events):
            self.invalidate()

    def invalidate(self) -> None:
        """What is known may be old. Where it is watched it is fetched again."""
        self._stale = True
        self._refresh_if_stale()

    def put(self, value: Value) -> None:
        """A value that came another way."""
        self.value, self.trouble, self._stale = value, "", False
        self._changed()

    def close(self) -> None:
        self._watchers.clear()
        if self._task is not None:
            self._task.cancel()

    def _refresh_if_stale(self) -> None:
        if self._stale and self._watchers and self._task is None:
            self._task = asyncio.ensure_future(self._refresh())

    async def _refresh(self) -> None:
        try:
            while self._stale and self._watchers:
                if self._fetched_at is not None:
                    await asyncio.sleep(max(0.0, self._fetched_at + self._pause - time.monotonic()))
                self._stale = False
                if not await self._fetch_once():
                    # The daemon is away. The store reconnects and then invalidates every feed.
                    self._stale = True
                    return
        finally:
            self._task = None

    async def _fetch_once(self) -> bool:
        """False where the daemon is away; what was known stays on the screen."""
        began = time.monotonic()
        try:
            value = await self._requests.ask(self._fetch)
        except NotRunning:
            return False
        except LegionError as error:
            self.trouble = error.message
        else:
            self.value, self.trouble = value, ""
        self._fetched_at = time.monotonic()
        self._pause = min(max(LEAST_PAUSE, _PAUSE_FACTOR * (self._fetched_at - began)), MOST_PAUSE)
        self._changed()
        return True

    def _changed(self) -> None:
        for watcher in list(self._watchers):
            watcher()


MOST_LINES = 5000


class LogFeed:
    def __init__(self, requests: Requests, ticket: int, changed: Callable[[], None]) -> None:
        self._requests = requests
        self._ticket = ticket
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self._rest = ""
        self._offset = 0
        self.run: int | None = None
        self.lines: list[str] = []
        self.dropped = 0
        """Lines at the start that are no longer kept."""
        self.answered = False

    def read_on(self) -> None:
        """Read what was added: called when the daemon may have more output."""
        self._again = True
        if self._task is None:
            self._task = asyncio.ensure_future(self._read())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _read(self) -> None:
        try:
            while self._again:
                self._again = False
                piece = await self._requests.ask(partial(_log, self._ticket, self._offset))
                if piece.run != self.run:
                    # Another attempt: its output from its start.
                    self._restart(piece.run)
                    piece = await self._requests.ask(partial(_log, self._ticket, 0))
                self._take(piece)
                if piece.text:
                    self._again = True
        except LegionError:
            # The next sign of more, or the next connection, tries again.
            return
        finally:
            self._task = None

    def _restart(self, run: int | None) -> None:
        self.run, self._offset, self._rest, self.lines, self.dropped = run, 0, "", [], 0

    def _take(self, piece: LogText) -> None:
        self._offset = piece.next_offset
        complete, newline, self._rest = (self._rest + piece.text).rpartition("\n")
        if newline:
            self.lines += sanitize_lines(complete)
        if piece.ended and self._rest:
            self.lines += sanitize_lines(self._rest)
            self._rest = ""
        if len(self.lines) > MOST_LINES:
            gone = len(self.lines) - MOST_LINES
            self.lines, self.dropped = self.lines[gone:], self.dropped + gone
        changed, self.answered = bool(piece.text) or not self.answered, True
        if changed:
            self._changed()


def _log(ticket: int, offset: int, legion: Legion) -> LogText:
    return legion.log(ticket, None, offset)
