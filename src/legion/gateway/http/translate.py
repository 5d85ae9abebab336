"""Asks a provider in its own dialect, and answers the caller in the caller's: event by event, as they come.

Knows neither passes nor routes. What a provider does wrong reaches the caller as an error that it understands.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import aiohttp
from aiohttp import web

from legion.gateway.access.answers import ErrorKind, Refused, json_answer
from legion.gateway.access.provider import Provider, ProviderDialect
from legion.gateway.accounting.ledger import RequestError
from legion.gateway.accounting.meter import RequestRecord
from legion.gateway.counting.counters import AnswerSummary
from legion.gateway.dialects import errors, registry
from legion.gateway.dialects.collect import collect_answer, events_of
from legion.gateway.dialects.messages import (
    AnswerBegun,
    AnswerEnded,
    AnswerFailed,
    Event,
    KeepAlive,
    ModelAnswer,
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
"""Who takes a word that keeps a conversation at one cache; others may refuse what they do not know."""
_LONGEST_BODY = 32 << 20
_QUIET = 15.0
"""Seconds after which the caller is told that we still wait."""
_STREAMED = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
_TOLD = ("retry-after", "x-request-id", "request-id")


@dataclass(frozen=True, kw_only=True)
class Translation:
    """One request between two dialects."""

    caller: Dialect
    provider: Dialect
    stream: bool
    asked: RequestInfo


class EventCounter:
    """What translated events tell."""

    def __init__(self, model: str) -> None:
        self.summary = AnswerSummary(model=model)

    def note(self, event: Event) -> None:
        match event:
            case AnswerBegun():
                self.summary.usage = event.usage
            case AnswerEnded():
                self.summary.usage, self.summary.complete = event.usage, True
            case AnswerFailed():
                self.summary.error = errors.ledger_name(event.error)


def request_of(dialect: Dialect, facts: Json | None) -> ModelRequest:
    """Raises Refused."""
    if facts is None:
        raise Refused(400, ErrorKind.INVALID, "the request is no JSON object; mend it.")
    try:
        return registry.read_request(dialect, facts)
    except UnreadableMessage as fault:
        raise Refused(400, ErrorKind.INVALID, f"the request cannot be read: {fault}.") from None


def outgoing(
    request: ModelRequest, caller: Dialect, provider: Provider, key: str | None, conversation: str
) -> tuple[Outgoing, Translation]:
    """The request in the words of the provider, whose own name for the model it already has."""
    theirs = Dialect(provider.kind.value)
    keyed = provider.kind is ProviderDialect.OPENAI_RESPONSES or provider.url.startswith(_KEYED_CACHES)
    named = (request.conversation or conversation) if keyed else ""
    longest = min(filter(None, (request.longest, provider.longest)), default=None)
    sent = replace(request, conversation=named, longest=longest)
    headers = (*_HEAD, _VERSION) if theirs is Dialect.ANTHROPIC else _HEAD
    try:
        body = dumps(registry.write_request(theirs, sent))
    except UnreadableMessage as fault:
        raise Refused(400, ErrorKind.INVALID, f"the request cannot be read: {fault}.") from None
    going = Outgoing(
        method="POST",
        path=_PATHS[provider.kind],
        headers=headers,
        body=body,
        provider=provider,
        key=key,
    )
    asked = registry.request_info(request, int(time.time()))
    return going, Translation(caller=caller, provider=theirs, stream=request.stream, asked=asked)


class Translator:
    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder

    async def pass_back(
        self,
        request: web.BaseRequest,
        upstream: aiohttp.ClientResponse,
        going: Outgoing,
        translation: Translation,
        record: RequestRecord,
    ) -> web.StreamResponse:
        """The answer, sent to its end as it comes. Raises Refused as long as nothing of it was sent."""
        record.status = upstream.status
        counter = record.counter = EventCounter(record.model)
        headers = [(name, value) for name, value in upstream.headers.items() if name.lower() in _TOLD]
        headers += self._forwarder.tell_limit(upstream, going, record)
        if upstream.status != 200:
            return await _error(upstream, going, translation, counter, headers)
        streamed = upstream.content_type == "text/event-stream"
        if streamed and translation.stream:
            return await _Stream(request, upstream, translation, record, counter).run(headers)
        answer = await _whole(upstream, going, translation, counter, streamed=streamed)
        record.first = time.monotonic()
        if record.recorder is not None:
            record.recorder.answer = answer
        if translation.stream:
            return await _as_stream(request, answer, translation, counter, headers)
        for event in (
            AnswerBegun(id="", model="", usage=answer.usage),
            AnswerEnded(stop=answer.stop, usage=answer.usage),
        ):
            counter.note(event)
        return json_answer(200, registry.write_answer(translation.caller, answer, translation.asked), dict(headers))


class _Stream:
    """Events in, events out, each as soon as it is there."""

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
        self._reader = StreamReader(translation.provider, translation.asked)
        self._writer: EventWriter = registry.writer(translation.caller, translation.asked)
        self._begun = False
        self._pulse: asyncio.TimerHandle | None = None

    async def run(self, headers: Headers) -> web.StreamResponse:
        answer = new_answer(self._upstream, 200, [*headers, *_STREAMED])
        await answer.prepare(self._request)
        loop = asyncio.get_running_loop()
        last = b""
        try:
            async for piece in pieces(self._upstream.content):
                if self._account.first is None:
                    self._account.first = time.monotonic()
                said = self._said(self._reader.feed(piece))
                if self._reader.over:
                    # It leaves together with the end mark.
                    last = said
                    break
                if said:
                    await answer.write(said)
                if self._pulse is not None:
                    self._pulse.cancel()
                self._pulse = loop.call_later(_QUIET, self._still_there, answer)
            else:
                last = self._said(self._reader.end())
        except UpstreamBroken as broken:
            self._account.error = broken.error
            last = self._said([registry.broken_off("the provider's answer broke off")])
        finally:
            if self._pulse is not None:
                self._pulse.cancel()
        self._account.cut = not self._counter.summary.complete
        await answer.write_eof(last)
        return answer

    def _said(self, events: list[Event]) -> bytes:
        if self._account.recorder is not None:
            self._account.recorder.note(events)
        for event in events:
            self._counter.note(event)
            self._begun = self._begun or isinstance(event, AnswerBegun)
        return b"".join([self._writer.write(event) for event in _joined(events)])

    def _still_there(self, answer: web.StreamResponse) -> None:
        if self._begun and self._request.transport is not None and not self._request.transport.is_closing():
            loop = asyncio.get_running_loop()
            self._pulse = loop.call_later(_QUIET, self._still_there, answer)
            # A few bytes: they are taken at once, whether the caller reads them or not.
            task = loop.create_task(answer.write(self._writer.write(KeepAlive())))
            task.add_done_callback(_forget)


def _joined(events: list[Event]) -> Iterator[Event]:
    """What came at once grows a part at once."""
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
    """A caller who is gone shows where the next real piece is sent."""
    if not task.cancelled():
        task.exception()


async def _error(
    upstream: aiohttp.ClientResponse,
    going: Outgoing,
    translation: Translation,
    counter: EventCounter,
    headers: Headers,
) -> web.Response:
    said: object = None
    with contextlib.suppress(UpstreamBroken):
        async for whole in without_key(pieces(upstream.content), going.key):
            said = _document(whole)
    # A provider that sends us elsewhere, or says nothing at all, has failed.
    fault = errors.read(said, upstream.status if upstream.status >= 400 else 502)
    counter.summary.error = errors.ledger_name(fault)
    status, body = registry.write_error(translation.caller, fault)
    return json_answer(status, body, dict(headers))


def _document(whole: bytes) -> object:
    try:
        return loads(whole)
    except UnreadableMessage:
        return " ".join(whole[:400].decode("utf-8", "replace").split())


async def _whole(
    upstream: aiohttp.ClientResponse,
    going: Outgoing,
    translation: Translation,
    counter: EventCounter,
    *,
    streamed: bool,
) -> ModelAnswer:
    name = going.provider.name
    body = bytearray()
    try:
        async for piece in pieces(upstream.content):
            body += piece
            if len(body) > _LONGEST_BODY:
                raise Refused(502, ErrorKind.API, f"the answer of provider {name} has no end.", RequestError.BROKEN)
    except UpstreamBroken as broken:
        sentence = f"the answer of provider {name} broke off; try again."
        raise Refused(502, ErrorKind.API, sentence, broken.error) from None
    try:
        if streamed:
            reader = StreamReader(translation.provider, translation.asked)
            return collect_answer([*reader.feed(bytes(body)), *reader.end()])
        return registry.read_answer(translation.provider, loads(bytes(body)), translation.asked)
    except ModelFailed as failed:
        counter.summary.error = errors.ledger_name(failed.error)
        raise Refused(502, ErrorKind.API, f"provider {name} failed: {failed.error.message}") from None
    except UnreadableMessage as fault:
        raise Refused(
            502, ErrorKind.API, f"the answer of provider {name} cannot be read: {fault}.", RequestError.UNREADABLE
        ) from None


async def _as_stream(
    request: web.BaseRequest, answer: ModelAnswer, translation: Translation, counter: EventCounter, headers: Headers
) -> web.StreamResponse:
    """For a provider that answers at once although it was asked for a stream."""
    writer = registry.writer(translation.caller, translation.asked)
    events = list(events_of(answer))
    for event in events:
        counter.note(event)
    response = web.StreamResponse(status=200, headers=[*headers, *_STREAMED])
    await response.prepare(request)
    await response.write_eof(b"".join(writer.write(event) for event in events))
    return response
