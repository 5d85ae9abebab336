"""HTTP connections that can be reset on purpose, which ASGI does not offer."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

Peer = tuple[str, int]


class BreakableProtocol(H11Protocol):
    """uvicorn's protocol, with its open connections by the caller's address."""

    open_connections: ClassVar[dict[Peer, asyncio.BaseTransport]] = {}
    _peer: Peer | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._peer = transport.get_extra_info("peername")
        if self._peer is not None:
            self.open_connections[self._peer] = transport
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._peer is not None:
            self.open_connections.pop(self._peer, None)
        super().connection_lost(exc)


def break_off(peer: Peer) -> None:
    """Reset the connection: the caller gets neither an end nor an error."""
    transport = BreakableProtocol.open_connections.get(peer)
    if isinstance(transport, asyncio.Transport):
        transport.abort()
