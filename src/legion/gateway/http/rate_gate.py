"""Limits how many requests a provider gets at the same time and within a minute. Further requests wait in order."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator

from legion.gateway.access.provider import Provider

_MINUTE = 60.0


class _RateGate:
    def __init__(self) -> None:
        self.open = 0
        self.changed = asyncio.Condition()
        self.starts: deque[float] = deque()


class RateGates:
    def __init__(self) -> None:
        self._gates: dict[str, _RateGate] = {}

    def through(self, provider: Provider) -> contextlib.AbstractAsyncContextManager[None]:
        """Wait until the provider may be asked, and hold the place until the answer has ended."""
        unlimited = provider.at_once is None and provider.per_minute is None
        return contextlib.nullcontext() if unlimited else self._held(provider)

    @contextlib.asynccontextmanager
    async def _held(self, provider: Provider) -> AsyncIterator[None]:
        gate = self._gates.setdefault(provider.name, _RateGate())
        async with gate.changed:
            while provider.at_once is not None and gate.open >= provider.at_once:
                await gate.changed.wait()
            gate.open += 1
        try:
            await self._pace(gate, provider.per_minute)
            yield
        finally:
            gate.open -= 1
            async with gate.changed:
                gate.changed.notify_all()

    async def _pace(self, gate: _RateGate, per_minute: int | None) -> None:
        while per_minute is not None:
            now = time.monotonic()
            while gate.starts and gate.starts[0] <= now - _MINUTE:
                gate.starts.popleft()
            if len(gate.starts) < per_minute:
                gate.starts.append(now)
                return
            await asyncio.sleep(gate.starts[0] + _MINUTE - now)
