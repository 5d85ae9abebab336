"""Forwards a request to its provider and streams the answer back unchanged, reading usage from the bytes that pass.

The caller has already admitted the request and looked up the key. Independent of passes and prices.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

import aiohttp
from aiohttp import web
from yarl import URL

from legion.gateway.access.admission import Refused
from legion.gateway.access.provider import KeyStyle, Provider, ProviderDialect
from legion.gateway.access.token_exchange import EDITOR
from legion.gateway.accounting.ledger import LimitEntry, RequestError
from legion.gateway.accounting.limits import limit_of
from legion.gateway.accounting.meter import RequestRecord
from legion.gateway.counting.counters import BodyCounter, Counter, StreamCounter
from legion.gateway.counting.openai import OpenAIBodyCounter, OpenAIStreamCounter, UsageHider
from legion.gateway.dialects.messages import ModelErrorKind

MAX_HEADER = 1 << 16
_CONNECT_PATIENCE = 30.0
_MAX_ERROR = 1 << 20
_HOP_BY_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    )
)
_REPLACED = frozenset(("host", "content-length", "authorization", "x-api-key", "accept-encoding", "expect"))
_NO_EXTRAS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_EVENTS = "text/event-stream"
_LOGIN_TOKEN = "sk-ant-oat"
_LOGIN_BETA = "oauth-2025-04-20"
"""Anthropic accepts the long-lived token of a login only with this flag; programs send it only with their own."""
_SKIPPED = "x-legion-skipped"
"""Names the providers of the route that were tried before the one that answered."""

Headers = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """A request as it goes to the provider."""

    method: str
    path: str
    """With the query, as the caller wrote it."""
    headers: Iterable[tuple[bytes, bytes]]
    body: bytes
    provider: Provider
    key: str | None
    hides_usage: bool = False
    """Remove the usage event from the answer, since the caller did not ask for it."""


class UpstreamBroken(Exception):
    """The connection to the provider broke while its answer was read."""

    def __init__(self, error: RequestError) -> None:
        super().__init__(error.value)
        self.error = error


def new_session(idle: float) -> aiohttp.ClientSession:
    """Connections to providers: any number, no cookies, bodies not decoded, no time limit except for silence."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_PATIENCE, sock_read=idle),
    )


class _HeadWithBody(web.StreamResponse):
    """Sends its head together with the first bytes of its body, which have already arrived."""

    _send_headers_immediately = False


class Forwarder:
    def __init__(self, session: aiohttp.ClientSession, on_limit: Callable[[LimitEntry], None]) -> None:
        self._session = session
        self._on_limit = on_limit

    async def ask(self, outgoing: Outgoing) -> aiohttp.ClientResponse:
        """The provider's answer with its body still unread; the caller closes it. Raises Refused."""
        name = outgoing.provider.name
        try:
            return await self._session.request(
                outgoing.method,
                URL(outgoing.provider.place(outgoing.path), encoded=True),
                data=aiohttp.BytesPayload(outgoing.body) if outgoing.body else None,
                headers=_request_headers(outgoing),
                skip_auto_headers=_NO_EXTRAS,
                allow_redirects=False,
            )
        except aiohttp.SocketTimeoutError:
            raise Refused(
                504, ModelErrorKind.TIMEOUT, f"provider {name} did not answer in time; try again.", RequestError.IDLE
            ) from None
        except (aiohttp.ClientError, OSError) as fault:
            raise Refused(
                502,
                ModelErrorKind.API,
                f"provider {name} unreachable: {_reason(fault)}; try again.",
                RequestError.UNREACHABLE,
            ) from None

    async def pass_back(
        self, request: web.BaseRequest, upstream: aiohttp.ClientResponse, outgoing: Outgoing, record: RequestRecord
    ) -> web.StreamResponse:
        """Stream the answer to the caller."""
        record.status = upstream.status
        headers = [*_response_headers(upstream, outgoing.key), *self.own_headers(upstream, outgoing, record)]
        counter = _counter(upstream, outgoing.provider.kind)
        if counter is None:
            record.error = RequestError.UNREADABLE
        record.counter = counter
        if record.recorder is not None:
            record.recorder.streamed = upstream.content_type == _EVENTS
        answer = new_answer(upstream, upstream.status, headers)
        read = pieces(upstream.content)
        if upstream.status >= 400:
            read = without_key(read, outgoing.key)
        hiding = UsageHider() if outgoing.hides_usage and upstream.content_type == _EVENTS else None
        last = b""
        try:
            await answer.prepare(request)
            async for piece in read:
                if record.first is None:
                    record.first = time.monotonic()
                shown = piece if hiding is None else hiding.feed(piece)
                if upstream.content.at_eof():
                    # Sent together with the end mark.
                    last = shown
                else:
                    await answer.write(shown)
                if counter is not None:
                    counter.feed(piece)
                if record.recorder is not None:
                    record.recorder.feed(piece)
        except UpstreamBroken as broken:
            _cut(request, record, broken.error)
            return answer
        if counter is not None:
            counter.end()
            if not record.summary.complete and not record.summary.error:
                record.fail(RequestError.UNFINISHED)
        await answer.write_eof(last if hiding is None else last + hiding.rest)
        return answer

    def record_limit(
        self, upstream: aiohttp.ClientResponse, provider: Provider, record: RequestRecord
    ) -> LimitEntry | None:
        """Pass on the limit that an answer reports, to be written into the ledger."""
        limit = limit_of(
            upstream.headers, upstream.status, at=round(time.time(), 3), run=record.pass_.run, provider=provider.name
        )
        if limit is not None:
            self._on_limit(limit)
        return limit

    def own_headers(self, upstream: aiohttp.ClientResponse, outgoing: Outgoing, record: RequestRecord) -> Headers:
        """Headers that the gateway adds to the answer. Records the limit that the answer reports."""
        headers = [(_SKIPPED, ", ".join(record.skipped))] if record.skipped else []
        limit = self.record_limit(upstream, outgoing.provider, record)
        if upstream.status == 429 and limit is not None and limit.retry_after is None and limit.resets_at is not None:
            # Without this header Claude Code retries for minutes, although the answer names the end of the limit.
            headers.append(("retry-after", str(max(1, math.ceil(limit.resets_at - time.time())))))
        return headers


def _reason(fault: Exception) -> str:
    """Only the system's own text: other errors quote the provider, which may quote the key."""
    match fault:
        case aiohttp.ClientConnectorError():
            return str(fault)
        case aiohttp.ConnectionTimeoutError():
            return f"no connection within {_CONNECT_PATIENCE:g} s"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | OSError():
            return "it hung up"
        case _:
            return "its answer is not valid HTTP"


def new_answer(upstream: aiohttp.ClientResponse, status: int, headers: Headers) -> web.StreamResponse:
    """An answer to the caller, not started yet. The head is sent at once where the body has not arrived."""
    kind = _HeadWithBody if upstream.content.total_bytes else web.StreamResponse
    return kind(status=status, headers=headers)


def _cut(request: web.BaseRequest, record: RequestRecord, error: RequestError) -> None:
    """Close the connection without the end mark, so that the caller sees a broken answer and not a short one."""
    record.fail(error)
    if request.transport is not None:
        request.transport.close()


def _counter(upstream: aiohttp.ClientResponse, kind: ProviderDialect) -> Counter | None:
    """None for compressed answers, which cannot be read."""
    if "content-encoding" in upstream.headers:
        return None
    streamed = upstream.content_type == _EVENTS
    if kind is ProviderDialect.ANTHROPIC:
        return StreamCounter() if streamed else BodyCounter()
    return OpenAIStreamCounter() if streamed else OpenAIBodyCounter()


async def pieces(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    while True:
        try:
            piece = await content.readany()
        except TimeoutError:
            raise UpstreamBroken(RequestError.IDLE) from None
        except (aiohttp.ClientError, OSError):
            raise UpstreamBroken(RequestError.UPSTREAM_GONE) from None
        if not piece:
            return
        yield piece


async def without_key(read: AsyncIterator[bytes], key: str | None) -> AsyncIterator[bytes]:
    """The body of an error, with stars for the key: some providers repeat it. The announced length stays valid."""
    body = b""
    async for piece in read:
        body += piece
        if len(body) > _MAX_ERROR:
            raise UpstreamBroken(RequestError.UPSTREAM_GONE)
    yield body if key is None else body.replace(key.encode(), b"*" * len(key))


def _request_headers(outgoing: Outgoing) -> Headers:
    headers = [*_kept(outgoing.headers, _HOP_BY_HOP | _REPLACED), ("Accept-Encoding", "identity")]
    key = outgoing.key
    if key is not None and outgoing.provider.auth is KeyStyle.API_KEY:
        headers.append(("x-api-key", key))
    elif key is not None:
        headers.append(("Authorization", f"Bearer {key}"))
        if outgoing.provider.auth is KeyStyle.EXCHANGED:
            headers += EDITOR.items()
        if key.startswith(_LOGIN_TOKEN):
            flags = [value for name, value in headers if name.lower() == "anthropic-beta"]
            headers = [(name, value) for name, value in headers if name.lower() != "anthropic-beta"]
            headers.append(("anthropic-beta", ",".join([*flags, _LOGIN_BETA])))
    return headers


def _response_headers(upstream: aiohttp.ClientResponse, key: str | None) -> Headers:
    headers = _kept(upstream.raw_headers, _HOP_BY_HOP)
    return headers if key is None else [(name, value) for name, value in headers if key not in value]


def _kept(raw: Iterable[tuple[bytes, bytes]], dropped: frozenset[str]) -> Headers:
    pairs = [(name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape")) for name, value in raw]
    named = {one.strip().lower() for name, value in pairs if name.lower() == "connection" for one in value.split(",")}
    return [(name, value) for name, value in pairs if name.lower() not in dropped and name.lower() not in named]
