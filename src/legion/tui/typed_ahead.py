"""Keys in the order in which they were typed: the next one is handled when the one before has had its effects.

Textual gives each widget a queue of its own. A key that opens a form is handled in one queue while the keys behind it
already wait in another, so letters meant for the form would act on the place below it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator

from textual import events
from textual.app import App
from textual.dom import DOMNode

_LONGEST = 5.0
"""Seconds after which the next key is handled in any case: a widget that hangs must not hold up Ctrl+Q."""


class TypedAhead:
    def __init__(self, app: App[None], handle: Callable[[events.Event], Awaitable[None]]) -> None:
        """`handle` gives a key to Textual; it is called in the app's own queue."""
        self._app = app
        self._handle = handle
        self._keys: deque[events.Event] = deque()
        self._way: Iterator[DOMNode] = iter(())
        self._busy = False
        self._step = 0
        self._limit: asyncio.TimerHandle | None = None
        self.key = ""
        """The key that is handled, or was handled last."""
        self.pressed_at = self.before_at = 0.0
        """When it and the one before it were pressed, by the clock of Textual's events."""

    @property
    def is_idle(self) -> bool:
        """Whether every key has had its effects."""
        return not self._busy

    async def take(self, key: events.Event) -> None:
        self._keys.append(key)
        if not self._busy:
            await self._next()

    async def _next(self) -> None:
        self._step += 1
        if self._limit is not None:
            self._limit.cancel()
        self._busy = bool(self._keys)
        if self._keys:
            loop = asyncio.get_running_loop()
            self._limit = loop.call_later(_LONGEST, self._app.call_later, self._next)
            self._way = self._queues(self._app.focused or self._app.screen)
            key = self._keys.popleft()
            self.key = key.key if isinstance(key, events.Key) else ""
            self.before_at, self.pressed_at = self.pressed_at, key.time
            await self._handle(key)
            await self._follow()

    def _queues(self, focused: DOMNode) -> Iterator[DOMNode]:
        """Where effects of a key can still wait: it rises to the app, and so do the messages of its action."""
        rising = list(focused.ancestors_with_self)
        yield from rising
        yield from rising
        shown = rising[-2] if len(rising) > 1 else None
        while shown is not self._app.screen:
            shown = self._app.screen
            yield shown
        yield self._app

    async def _follow(self) -> None:
        """Wait at the end of the next queue; behind the last one the next key follows."""
        self._step += 1
        for node in self._way:
            if node.call_later(self._arrived, self._step):
                return
        await self._next()

    async def _arrived(self, step: int) -> None:
        if step == self._step:
            await self._follow()
