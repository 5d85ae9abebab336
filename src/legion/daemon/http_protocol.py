"""HTTP connections of all listeners: the head of a request has to arrive in time, and few may wait for theirs."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http import h11_impl


class BoundedHttp(h11_impl.H11Protocol):
    head_seconds = 10.0
    """For a head, from the connection or from its first byte on."""
    most_waiting = 256
    """Connections without a complete head. One more ends the oldest: a client of ours sends its head at once."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._since = time.monotonic()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) > self.most_waiting:
            others: list[Any] = list(self.connections)
            waiting = [one for one in others if isinstance(one, BoundedHttp) and getattr(one, "cycle", None) is None]
            if len(waiting) > self.most_waiting:
                min(waiting, key=lambda one: one._since).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.get_protocol() is not self or repr(self.conn.their_state) != "IDLE":
            self._stop_waiting()
        elif self._timer is None and self.conn.trailing_data[0]:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
