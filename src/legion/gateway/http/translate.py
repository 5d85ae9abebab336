"""Translates a request into the provider's dialect and the answer into the caller's, each event as it arrives.

Errors of a provider reach the caller as errors of its own dialect. Independent of passes and routes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import aiohttp
from aiohttp import web

from legion.gateway.access.admission import Refused, json_answer, unreadable
from legion.gateway.access.provider import Provider, ProviderDialect
from legion.gateway.accounting.ledger import RequestError
from legion.gateway.accounting.meter import RequestRecord
from legion.gateway.counting.counters import AnswerSummary
from legion.gateway.dialects import errors, registry
from legion.gateway.dialects.common import collect_answer, events_of
from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerStarted,
    Event,
    KeepAlive,
    ModelAnswer,
    ModelErrorKind,
    ModelFailed,
    ModelRequest,
    PartGrew,
    RequestInfo,
)
from legion.gateway.dialects.registry import Dialect, EventWriter, StreamReader
from legion.gateway.http.forward import Forwarder, Headers, Outgoing, UpstreamBroken, new_answer, pieces, without_key
from legion.gateway.json_text import Json, UnreadableMessage, dumps, loads

_PATHS = {
    ProviderDialect.ANTHROPIC: "/v1/messages",
    ProviderDialect.OPENAI_CHAT: "/v1/chat/completions",
    ProviderDialect.OPENAI_RESPONSES: "/v1/responses",
}
_VERSION = (b"anthropic-version", b"2023-06-01")
_HEAD = ((b"content-type", b"application/json"), (b"user-agent", b"legion"))
_KEYED_CACHES = ("https://api.openai.com", "https://openrouter.ai")
"""Chat Completions providers that accept `prompt_cache_key`; others may refuse unknown fields."""
_MAX_BODY = 32 << 20
_KEEP_ALIVE = 15.0
"""Seconds without an event after which the caller gets a keep-alive."""
_STREAMED = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
_PASSED_HEADERS = ("retry-after", "x-request-id", "request-id")


@dataclass(frozen=True, kw_only=True)
class Translation:
    """One request between two dialects."""

    caller: Dialect
    provider: Dialect
    stream: bool
    info: RequestInfo


class EventCounter:
    """Sums up the events of a translated answer for the ledger."""

    def __init__(self, model: str) -> None:
        self.summary = AnswerSummary(model=model)

    def note(self, event: Event) -> None:
        match event:
            case AnswerStarted():
                self.summary.usage = event.usage
            case AnswerEnded():
                self.summary.usage, self.summary.complete = event.usage, True
            case AnswerFailed():
                self.summary.error = errors.ledger_name(event.error)


def request_of(dialect: Dialect, facts: Json | None) -> ModelRequest:
    """The request in the common form. Raises Refused."""
    if facts is None:
        raise Refused(400, ModelErrorKind.INVALID, "the request is not a JSON object; send one.")
    try:
        return registry.read_request(dialect, facts)
    except UnreadableMessage as fault:
        raise unreadable(fault) from None


def outgoing(
    request: ModelRequest, caller: Dialect, provider: Provider, key: str | None, conversation: str
) -> tuple[Outgoing, Translation]:
    """The request in the provider's dialect. Its model is already the provider's own name."""
    dialect = Dialect(provider.kind.value)
    keyed = provider.kind is ProviderDialect.OPENAI_RESPONSES or provider.url.startswith(_KEYED_CACHES)
    named = (request.conversation or conversation) if keyed else ""
    max_tokens = min(filter(None, (request.max_tokens, provider.longest)), default=None)
    sent = replace(request, conversation=named, max_tokens=max_tokens)
    headers = (*_HEAD, _VERSION) if dialect is Dialect.ANTHROPIC else _HEAD
    try:
        body = dumps(registry.write_request(dialect, sent))
    except UnreadableMessage as fault:
        raise unreadable(fault) from None
    outgoing = Outgoing(
        method="POST", path=_PATHS[provider.kind], headers=headers, body=body, provider=provider, key=key
    )
    info = registry.request_info(request, int(time.time()))
    return outgoing, Translation(caller=caller, provider=dialect, stream=request.stream, info=info)


class Translator:
    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder

    async def pass_back(
        self,
        request: web.BaseRequest,
        upstream: aiohttp.ClientResponse,
        outgoing: Outgoing,
        translation: Translation,
        record: RequestRecord,
    ) -> web.StreamResponse:
        """Stream the answer to the caller. Raises Refused as long as nothing was sent."""
        record.status = upstream.status
        counter = record.counter = EventCounter(record.model)
        headers = [(name, value) for name, value in upstream.headers.items() if name.lower() in _PASSED_HEADERS]
        headers += self._forwarder.own_headers(upstream, outgoing, record)
        if upstream.status != 200:
            return await _error(upstream, outgoing, translation, counter, headers)
        streamed = upstream.content_type == "text/event-stream"
        if streamed and translation.stream:
            return await _Stream(request, upstream, translation, record, counter).run(headers)
        answer = await _read_answer(upstream, outgoing, translation, counter, streamed=streamed)
        record.first = time.monotonic()
        if record.recorder is not None:
            record.recorder.answer = answer
        if translation.stream:
            return await _as_stream(request, answer, translation, counter, headers)
        for event in (
            AnswerStarted(id="", model="", usage=answer.usage),
            AnswerEnded(stop=answer.stop, usage=answer.usage),
        ):
            counter.note(event)
        return json_answer(200, registry.write_answer(translation.caller, answer, translation.info), dict(headers))


class _Stream:
    """Translates a stream, each event as soon as it has arrived."""

    def __init__(
        self,
        request: web.BaseRequest,
        upstream: aiohttp.ClientResponse,
        translation: Translation,
        record: RequestRecord,
        counter: EventCounter,
    ) -> None:
        self._request = request
        self._upstream = upstream
        self._account = record
        self._counter = counter
        self._reader = StreamReader(translation.provider, translation.info)
        self._writer: EventWriter = registry.writer(translation.caller, translation.info)
        self._started = False
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, headers: Headers) -> web.StreamResponse:
        answer = new_answer(self._upstream, 200, [*headers, *_STREAMED])
        await answer.prepare(self._request)
        loop = asyncio.get_running_loop()
        last = b""
        try:
            async for piece in pieces(self._upstream.content):
                if self._account.first is None:
                    self._account.first = time.monotonic()
                translated = self._translate(self._reader.feed(piece))
                if self._reader.over:
                    # Sent together with the end mark.
                    last = translated
                    break
                if translated:
                    await answer.write(translated)
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = loop.call_later(_KEEP_ALIVE, self._keep_alive, answer)
            else:
                last = self._translate(self._reader.end())
        except UpstreamBroken as broken:
            self._account.error = broken.error
            last = self._translate([registry.broken_off("the provider's answer broke off")])
        finally:
            if self._timer is not None:
                self._timer.cancel()
        self._account.cut = not self._counter.summary.complete
        await answer.write_eof(last)
        return answer

    def _translate(self, events: list[Event]) -> bytes:
        if self._account.recorder is not None:
            self._account.recorder.note(events)
        for event in events:
            self._counter.note(event)
            self._started = self._started or isinstance(event, AnswerStarted)
        return b"".join([self._writer.write(event) for event in _joined(events)])

    def _keep_alive(self, answer: web.StreamResponse) -> None:
        if self._started and self._request.transport is not None and not self._request.transport.is_closing():
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_KEEP_ALIVE, self._keep_alive, answer)
            # A few bytes, which the socket accepts at once even if the caller does not read.
            task = loop.create_task(answer.write(self._writer.write(KeepAlive())))
            task.add_done_callback(_forget)


def _joined(events: list[Event]) -> Iterator[Event]:
    """Join the growth of a part that arrived in one piece."""
    index, texts = -1, list[str]()
    for event in events:
        if isinstance(event, PartGrew):
            if event.index != index and texts:
                yield PartGrew(index, "".join(texts))
                texts = []
            index = event.index
            texts.append(event.text)
            continue
        if texts:
            yield PartGrew(index, "".join(texts))
            texts = []
        yield event
    if texts:
        yield PartGrew(index, "".join(texts))


def _forget(task: asyncio.Task[None]) -> None:
    """Ignore the failure: if the caller is gone, the next write of the stream raises."""
    if not task.cancelled():
        task.exception()


async def _error(
    upstream: aiohttp.ClientResponse,
    outgoing: Outgoing,
    translation: Translation,
    counter: EventCounter,
    headers: Headers,
) -> web.Response:
    document: object = None
    with contextlib.suppress(UpstreamBroken):
        async for body in without_key(pieces(upstream.content), outgoing.key):
            document = _document(body)
    # A redirect or an empty answer counts as a failure of the provider.
    error = errors.read(document, upstream.status if upstream.status >= 400 else 502)
    counter.summary.error = errors.ledger_name(error)
    status, facts = registry.write_error(translation.caller, error)
    return json_answer(status, facts, dict(headers))


def _document(body: bytes) -> object:
    try:
        return loads(body)
    except UnreadableMessage:
        return " ".join(body[:400].decode("utf-8", "replace").split())


async def _read_answer(
    upstream: aiohttp.ClientResponse,
    outgoing: Outgoing,
    translation: Translation,
    counter: EventCounter,
    *,
    streamed: bool,
) -> ModelAnswer:
    name = outgoing.provider.name
    body = bytearray()
    try:
        async for piece in pieces(upstream.content):
            body += piece
            if len(body) > _MAX_BODY:
                raise Refused(
                    502,
                    ModelErrorKind.API,
                    f"the answer of provider {name} is larger than {_MAX_BODY >> 20} MB; ask for less.",
                    RequestError.BROKEN,
                )
    except UpstreamBroken as broken:
        sentence = f"the answer of provider {name} broke off; try again."
        raise Refused(502, ModelErrorKind.API, sentence, broken.error) from None
    try:
        if streamed:
            reader = StreamReader(translation.provider, translation.info)
            return collect_answer([*reader.feed(bytes(body)), *reader.end()])
        return registry.read_answer(translation.provider, loads(bytes(body)), translation.info)
    except ModelFailed as failed:
        counter.summary.error = errors.ledger_name(failed.error)
        raise Refused(502, ModelErrorKind.API, f"provider {name} failed: {failed.error.message}") from None
    except UnreadableMessage as fault:
        raise Refused(
            502, ModelErrorKind.API, f"the answer of provider {name} cannot be read: {fault}.", RequestError.UNREADABLE
        ) from None


async def _as_stream(
    request: web.BaseRequest, answer: ModelAnswer, translation: Translation, counter: EventCounter, headers: Headers
) -> web.StreamResponse:
    """Send a complete answer as a stream, for a provider that does not stream although it was asked to."""
    writer = registry.writer(translation.caller, translation.info)
    events = list(events_of(answer))
    for event in events:
        counter.note(event)
    response = web.StreamResponse(status=200, headers=[*headers, *_STREAMED])
    await response.prepare(request)
    await response.write_eof(b"".join(writer.write(event) for event in events))
    return response
