"""The output of one ticket's latest run, read on from where it stopped whenever there is a sign of more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from legion.client.legion import Legion
from legion.client.text.terminal import sanitize_lines
from legion.tui.link.requests import Requests
from legion.wire.errors import LegionError
from legion.wire.ticket_pages import LogText

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
