"""HTTP connections that can be broken on purpose, which ASGI has no word for."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

Peer = tuple[str, int]


class BreakableProtocol(H11Protocol):
    """uvicorn's own protocol, found again by the caller's address."""

    living: ClassVar[dict[Peer, asyncio.BaseTransport]] = {}
    _peer: Peer | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._peer = transport.get_extra_info("peername")
        if self._peer is not None:
            self.living[self._peer] = transport
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._peer is not None:
            self.living.pop(self._peer, None)
        super().connection_lost(exc)


def break_off(peer: Peer) -> None:
    """Reset the connection: the caller sees neither an end nor an error, only that it is gone."""
    transport = BreakableProtocol.living.get(peer)
    if isinstance(transport, asyncio.Transport):
        transport.abort()
