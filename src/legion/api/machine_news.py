"""Wakes the beats of machines that wait for news of the head, and forwards what their agents ask of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

import aiohttp
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from yarl import URL

from legion.service.machines.dial_in import TOKEN, DialIn, MachineNews, passed_back
from legion.wire.errors import LegionError, Retryable

log = logging.getLogger(__name__)

LOOK_AGAIN = 1.0
"""Seconds between two looks for news without a signal. A machine that another head removed is out within them."""


class NewsBell:
    """Wakes the beats of machines that have news. One look after a commit serves all that wait on this event loop."""

    def __init__(self, head: DialIn) -> None:
        self._head = head
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[asyncio.Event, int] = {}
        self._known: Mapping[int, MachineNews] = {}
        self._looking: asyncio.Task[None] | None = None
        self._again = False
        self._looked_at = 0.0
        head.store.on_commit(self._committed)

    @contextlib.asynccontextmanager
    async def listening(self, machine: int) -> AsyncIterator[asyncio.Event]:
        self._loop = asyncio.get_running_loop()
        event = asyncio.Event()
        self._waiting[event] = machine
        try:
            yield event
        finally:
            del self._waiting[event]

    def look_if_due(self) -> None:
        """Another head, or a queue that did not answer, gives no signal."""
        if time.monotonic() - self._looked_at >= LOOK_AGAIN / 2:
            self._look()

    def _committed(self) -> None:
        loop = self._loop
        if loop is not None:
            # The loop has ended with the daemon.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self._again = True
        if self._waiting and (self._looking is None or self._looking.done()):
            self._looking = asyncio.get_running_loop().create_task(self._ring())

    async def _ring(self) -> None:
        while self._again:
            self._again = False
            self._looked_at = time.monotonic()
            try:
                news = await run_in_threadpool(self._head.news)
            except LegionError as trouble:
                log.warning("no look for news of machines, will retry: %s", trouble.message)
                return
            for event, machine in self._waiting.items():
                now = news.get(machine)
                if now is None or now.has_waiting or now != self._known.get(machine):
                    event.set()
            self._known = news


# Forwards a request of an agent on a machine to the gateway or to the daemon of the head, streaming both ways.

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
