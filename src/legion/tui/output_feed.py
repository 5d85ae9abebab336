"""The output of all agents at work: one long poll while a screen shows it, and the last lines of each run.

Lines are cleaned when they are complete, so that no escape sequence is split between two pieces.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.client.text.terminal import sanitize_lines
from legion.tui.link.requests import Requests
from legion.wire.errors import LegionError
from legion.wire.history import FollowOutput, LiveOutput, OutputPiece, RunningLine

KEPT_LINES = 400
LEAST_PAUSE = 0.25
"""Seconds between two answers: agents that print constantly are drawn four times a second."""
_LONGEST_LINE = 8192
_TROUBLE_PAUSE = 2.0
_WAIT = 20.0


@dataclass
class Tail:
    """The last lines that a run printed."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    rest: str = ""
    """The start of a line that is not complete."""
    next_offset: int = 0
    total: int = 0
    """Lines so far, those that were dropped included."""

    def add(self, text: str) -> None:
        complete, newline, self.rest = (self.rest + text).rpartition("\n")
        if newline:
            self._append(complete)
        if len(self.rest) > _LONGEST_LINE:
            self._append(self.rest)
            self.rest = ""

    def last(self, count: int) -> list[str]:
        """At most so many lines, with the incomplete one."""
        shown = [*self.lines, *(sanitize_lines(self.rest) if self.rest.strip() else [])]
        return shown[-count:] if count > 0 else []

    def _append(self, text: str) -> None:
        added = sanitize_lines(text)
        self.total += len(added)
        self.lines.extend(added)


class OutputFeed:
    """What each run at work has printed last. It asks only while there is a watcher."""

    def __init__(self, requests: Requests, cwd: Callable[[], str]) -> None:
        """`cwd` names the project; empty: all."""
        self._requests = requests
        self._cwd = cwd
        self._watchers: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self.running: list[RunningLine] = []
        self.tails: dict[int, Tail] = {}
        self.pieces: list[OutputPiece] = []
        """Those of the last answer."""

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        self._watchers.append(watcher)
        self.resume()

        def end() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)
            if not self._watchers:
                self.close()

        return end

    def resume(self) -> None:
        """Start to ask, or ask again after the daemon came back."""
        if self._watchers and self._task is None:
            self._task = asyncio.ensure_future(self._follow())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        while True:
            began = time.monotonic()
            wanted = FollowOutput(cwd=self._cwd(), seen=self._seen())
            try:
                answer = await self._requests.ask(partial(_output, wanted), counts=False)
            except NotRunning:
                # The store resumes this when the daemon is back.
                self._task = None
                return
            except LegionError:
                await asyncio.sleep(_TROUBLE_PAUSE)
                continue
            self.take(answer)
            await asyncio.sleep(max(0.0, began + LEAST_PAUSE - time.monotonic()))

    def take(self, answer: LiveOutput) -> None:
        self.running, self.pieces = answer.running, answer.pieces
        at_work = {line.run for line in answer.running}
        self.tails = {run: tail for run, tail in self.tails.items() if run in at_work}
        for piece in answer.pieces:
            tail = self.tails.setdefault(piece.run, Tail())
            if piece.offset > tail.next_offset and tail.next_offset:
                tail.add("\n")
            tail.add(piece.text)
            tail.next_offset = piece.next_offset
        for run in at_work:
            self.tails.setdefault(run, Tail())
        for watcher in list(self._watchers):
            watcher()

    def _seen(self) -> dict[str, int]:
        return {str(run): tail.next_offset for run, tail in self.tails.items()}


def _output(wanted: FollowOutput, legion: Legion) -> LiveOutput:
    return legion.output(wanted, _WAIT)
