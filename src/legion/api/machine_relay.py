"""Forwards a request of an agent on a machine to the gateway or to the daemon of the head, streaming both ways."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

import aiohttp
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from yarl import URL

from legion.service.machines.dial_in import TOKEN, passed_back
from legion.wire.errors import LegionError, Retryable

_CHECK_EVERY = 1.0
_IDLE = 600.0


@dataclass(frozen=True, kw_only=True)
class RelayedRequest:
    """What is sent to the gateway or the daemon. Nothing of the agent's request is in the path."""

    method: str
    url: str
    query: Sequence[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes


async def relay(
    outgoing: RelayedRequest, allowed: Callable[[], object], *, token: str, authority: Callable[[], str]
) -> Response:
    """The answer, as it arrives. `allowed` raises when the machine may no longer have it.

    A URL with TLS is the head's on another host. It gets the machine's token if its certificate is of `authority`.
    """
    headers = dict(outgoing.headers)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=_IDLE)
    connector = None
    if outgoing.url.startswith("https://"):
        headers[TOKEN] = token
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority()))
    session = aiohttp.ClientSession(
        timeout=timeout, connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    )
    url = URL(outgoing.url, encoded=True).with_query(outgoing.query)
    try:
        answer = await session.request(
            outgoing.method, url, headers=headers, data=outgoing.body or None, allow_redirects=False
        )
        if 300 <= answer.status < 400:
            answer.close()
            raise Retryable("The gateway of the head answered with a redirect, which is not followed.")
    except aiohttp.ClientError as broken:
        await session.close()
        raise Retryable(f"The head could not reach its gateway ({type(broken).__name__}): try again.") from broken
    except BaseException:
        await session.close()
        raise
    return StreamingResponse(
        _parts(session, answer, allowed), status_code=answer.status, headers=passed_back(answer.headers)
    )


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
