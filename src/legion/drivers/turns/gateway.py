"""Asks the gateway how it answered this run's last request: programs do not report that reliably."""

from __future__ import annotations

import asyncio
import contextlib
import json
from urllib.parse import urlsplit

from legion.drivers.turns.outcome import GatewayAnswer

_TIMEOUT = 5.0


async def last_answer(url: str, token: str) -> GatewayAnswer | None:
    """How the gateway answered the last request of this run; None where it does not answer or has no record."""
    if not url:
        return None
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, TimeoutError):
        return _parse(await asyncio.wait_for(_get(url, token), _TIMEOUT))
    return None


async def _get(url: str, token: str) -> bytes:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        # On a machine the gateway is reached through a relay, under a path of the run's own.
        path = f"{address.path.rstrip('/')}/legion/status"
        head = f"GET {path} HTTP/1.0\r\nHost: {address.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        return await reader.read(-1)
    finally:
        writer.close()


def _parse(answer: bytes) -> GatewayAnswer | None:
    _, _, body = answer.partition(b"\r\n\r\n")
    last = json.loads(body).get("last")
    if last is None:
        return None
    return GatewayAnswer(
        status=int(last["status"]),
        error=str(last["error"] or ""),
        failures=int(last["failures"]),
        failing_for=float(last["failing_for"]),
        open=int(last["open"]),
    )
