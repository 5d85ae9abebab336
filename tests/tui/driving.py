"""Drives the terminal UI in a test: opens it without a terminal, presses keys, waits for what a person would see."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.events import Key
from textual.pilot import Pilot

from legion.tui.app import LegionApp, Options
from legion.tui.screens.prompts import DecisionScreen
from legion.tui.widgets.row_list import RowList
from tests.support.board import Board

PATIENCE = 60.0
"""Seconds: a dozen screens are drawn one after the other, also on a machine that does much else."""
LOOK_AGAIN = 0.03
"""Seconds: each look draws the complete screen."""


class Shown:
    """The UI as a person sees it."""

    def __init__(self, app: LegionApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def text(self) -> str:
        """What is on the screen, line by line."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def press(self, *keys: str) -> Shown:
        """As a person does, who reads a question before the answer."""
        for key in keys:
            await self.pilot.press(key)
            await self.until(lambda: self.is_read, "a question that can be answered")
        return self

    async def type_at_once(self, *keys: str) -> Shown:
        """As a person does, who types on without a look, however slow this machine is."""
        for event in [Key(key, key if len(key) == 1 else None) for key in keys]:
            self.app.post_message(event)
        await self.pilot.pause()
        await self.until(lambda: self.app.typed.is_idle, "the end of what was typed")
        return self

    @property
    def is_read(self) -> bool:
        """Whether the next key would be an answer, where there is a question."""
        asks, typed = self.app.screen, self.app.typed
        return not isinstance(asks, DecisionScreen) or asks.quiet_at(time.monotonic(), typed.pressed_at)

    async def until(self, seen: Callable[[], object], what: str = "") -> Shown:
        deadline = time.monotonic() + PATIENCE
        while not seen():
            assert time.monotonic() < deadline, f"{what or 'it'} did not appear:\n{self.text}"
            await self.pilot.pause(LOOK_AGAIN)
        await self.pilot.pause()
        return self

    async def shows(self, *words: str) -> Shown:
        def seen() -> bool:
            text = self.text
            return all(word in text for word in words)

        return await self.until(seen, f"{words}")

    async def settled(self) -> Shown:
        """No request is under way, and two looks in a row are the same."""
        while True:
            await self.until(lambda: not self._is_waiting)
            before = self.text
            await self.pilot.pause(0.15)
            # A request that was sent meanwhile may have made the connection look slow.
            if before == self.text and not self._is_waiting:
                return self

    @property
    def _is_waiting(self) -> bool:
        return bool(self.app.store.requests.connection.waiting)

    def rows(self, selector: str) -> RowList:
        return self.app.screen.query_one(selector, RowList)


@asynccontextmanager
async def opened(
    board: Board,
    first: str = "board",
    size: tuple[int, int] = (100, 30),
    memory: Path | None = None,
    kind: type[LegionApp] = LegionApp,
) -> AsyncIterator[Shown]:
    """The UI on a place, once the daemon has answered."""
    app = kind(Options(data_dir=board.data.root, cwd=board.cwd, first=first, start=False, memory=memory))
    async with app.run_test(size=size) as pilot:
        shown = Shown(app, pilot)
        await shown.until(lambda: len(app.screen_stack) > 1 and app.store.status.value is not None, "an answer")
        yield shown


def drive(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())
