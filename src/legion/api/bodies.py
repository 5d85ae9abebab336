"""Reads the bodies of requests, of all listeners: no longer, no slower, and no more of them at once than allowed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.types import Receive, Scope

from legion.api.problems import GuardRefusal
from legion.api.quota import Quota, QuotaFull
from legion.wire.errors import BadInput

_IN_FLIGHT = Quota("bytes of unfinished requests", 256 << 20, each=64 << 20)


@dataclass(frozen=True, kw_only=True)
class BodyLimits:
    """All listeners of a process share the memory for bodies."""

    in_flight: Quota = _IN_FLIGHT
    seconds: float = 120.0
    """Within which a body has to be there."""
    seconds_without_login: float = 10.0


class IncomingBody:
    """The body of one request. What it holds of the memory for bodies is held until `release`."""

    def __init__(self, limits: BodyLimits, scope: Scope, receive: Receive) -> None:
        self._limits = limits
        self._scope = scope
        self._receive = receive
        self._caller, self._held = "", 0

    def release(self) -> None:
        self._limits.in_flight.give_back(self._caller, self._held)
        self._held = 0

    async def read(self, caller: str, *, most: int, is_known: bool) -> bytes | None:
        """None where the client has left. Raises GuardRefusal."""
        self._caller = caller
        try:
            async with asyncio.timeout(self._limits.seconds if is_known else self._limits.seconds_without_login):
                return await self._whole(most)
        except TimeoutError:
            raise GuardRefusal(408, BadInput("The request did not arrive in time; send it again.")) from None
        except QuotaFull as full:
            raise GuardRefusal(full.status, full) from None

    async def _whole(self, most: int) -> bytes | None:
        lengths = [value for name, value in self._scope["headers"] if name == b"content-length"]
        too_big = any(value.isdigit() and int(value) > most for value in lengths)
        body, more = bytearray(), not too_big
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            self._limits.in_flight.take(self._caller, len(part))
            self._held += len(part)
            body += part
            too_big = len(body) > most
            more = message.get("more_body", False) and not too_big
        if too_big:
            limit = f"{most >> 20} MB" if most >= 1 << 20 else f"{most >> 10} kB"
            raise GuardRefusal(413, BadInput(f"The request is larger than {limit}; send less at once."))
        return bytes(body)
