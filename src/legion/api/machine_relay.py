"""Forwards a request of an agent on a machine to the gateway or to the daemon of the head, streaming both ways."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Callable

import aiohttp
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from legion.wire.errors import LegionError, Retryable

TOKEN = "legion-machine"
"""The header with a machine's token. A relayed request carries the run's pass in the usual one."""
_HOP = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length")
) | {TOKEN, "accept-encoding"}
_CHECK_EVERY = 1.0
_IDLE = 600.0


async def relay(request: Request, url: str, allowed: Callable[[], object], *, authority: Callable[[], str]) -> Response:
    """The answer of `url`, as it arrives. `allowed` raises when the machine may no longer have it.

    A URL with TLS is the head's on another host. It gets the machine's token if its certificate is of `authority`.
    """
    headers = {name: value for name, value in request.headers.items() if name not in _HOP}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=_IDLE)
    connector = None
    if url.startswith("https://"):
        headers[TOKEN] = request.headers.get(TOKEN, "")
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority()))
    session = aiohttp.ClientSession(timeout=timeout, connector=connector, auto_decompress=False)
    query = f"?{request.url.query}" if request.url.query else ""
    try:
        body = await request.body()
        answer = await session.request(request.method, f"{url}{query}", headers=headers, data=body or None)
    except aiohttp.ClientError as broken:
        await session.close()
        raise Retryable(f"The head could not reach its gateway ({type(broken).__name__}): try again.") from broken
    except BaseException:
        await session.close()
        raise
    passed = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
    return StreamingResponse(_parts(session, answer, allowed), status_code=answer.status, headers=passed)


async def _parts(
    session: aiohttp.ClientSession, answer: aiohttp.ClientResponse, allowed: Callable[[], object]
) -> AsyncIterator[bytes]:
    checked = time.monotonic()
    try:
        async for part in answer.content.iter_any():
            if time.monotonic() - checked > _CHECK_EVERY:
                checked = time.monotonic()
                try:
                    await run_in_threadpool(allowed)
                except LegionError:
                    return
            yield part
    finally:
        answer.close()
        await session.close()
