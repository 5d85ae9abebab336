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

from legion.gateway.answers import ErrorKind, Refused, json_answer
from legion.gateway.book import Account
from legion.gateway.counting import Seen
from legion.gateway.dialects import faults, known
from legion.gateway.dialects.gathering import events_of, gathered
from legion.gateway.dialects.inner import (
    Answer,
    Asked,
    Begun,
    Ended,
    Event,
    Failed,
    Json,
    ModelFailed,
    PartGrew,
    Request,
    Unreadable,
    Waiting,
)
from legion.gateway.dialects.jsons import dumps, loads
from legion.gateway.dialects.known import Dialect, StreamReader, Writer
from legion.gateway.forwarding import Broken, Forwarder, Headers, Outgoing, begun_answer, pieces, without_key
from legion.gateway.ledger import Trouble
from legion.gateway.provider import Kind, Provider

_PATHS = {
    Kind.ANTHROPIC: "/v1/messages",
    Kind.OPENAI_CHAT: "/v1/chat/completions",
    Kind.OPENAI_RESPONSES: "/v1/responses",
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
    asked: Asked


class EventCounter:
    """What translated events tell."""

    def __init__(self, model: str) -> None:
        self.seen = Seen(model=model)

    def note(self, event: Event) -> None:
        match event:
            case Begun():
                self.seen.usage = event.usage
            case Ended():
                self.seen.usage, self.seen.complete = event.usage, True
            case Failed():
                self.seen.error = faults.word(event.fault)


def request_of(dialect: Dialect, facts: Json | None) -> Request:
    """Raises Refused."""
    if facts is None:
        raise Refused(400, ErrorKind.INVALID, "the request is no JSON object; mend it.")
    try:
        return known.read_request(dialect, facts)
    except Unreadable as fault:
        raise Refused(400, ErrorKind.INVALID, f"the request cannot be read: {fault}.") from None


def outgoing(
    request: Request, caller: Dialect, provider: Provider, key: str | None, conversation: str
) -> tuple[Outgoing, Translation]:
    """The request in the words of the provider, whose own name for the model it already has."""
    theirs = Dialect(provider.kind.value)
    keyed = provider.kind is Kind.OPENAI_RESPONSES or provider.url.startswith(_KEYED_CACHES)
    named = (request.conversation or conversation) if keyed else ""
    longest = min(filter(None, (request.longest, provider.longest)), default=None)
    sent = replace(request, conversation=named, longest=longest)
    headers = (*_HEAD, _VERSION) if theirs is Dialect.ANTHROPIC else _HEAD
    try:
        body = dumps(known.write_request(theirs, sent))
    except Unreadable as fault:
        raise Refused(400, ErrorKind.INVALID, f"the request cannot be read: {fault}.") from None
    going = Outgoing(
        method="POST",
        path=_PATHS[provider.kind],
        headers=headers,
        body=body,
        provider=provider,
        key=key,
    )
    asked = known.asked(request, int(time.time()))
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
        account: Account,
    ) -> web.StreamResponse:
        """The answer, sent to its end as it comes. Raises Refused as long as nothing of it was sent."""
        account.status = upstream.status
        counter = account.counter = EventCounter(account.model)
        headers = [(name, value) for name, value in upstream.headers.items() if name.lower() in _TOLD]
        headers += self._forwarder.tell_limit(upstream, going, account)
        if upstream.status != 200:
            return await _error(upstream, going, translation, counter, headers)
        streamed = upstream.content_type == "text/event-stream"
        if streamed and translation.stream:
            return await _Stream(request, upstream, translation, account, counter).run(headers)
        answer = await _whole(upstream, going, translation, counter, streamed=streamed)
        account.first = time.monotonic()
        if account.listener is not None:
            account.listener.answer = answer
        if translation.stream:
            return await _as_stream(request, answer, translation, counter, headers)
        for event in (Begun(id="", model="", usage=answer.usage), Ended(stop=answer.stop, usage=answer.usage)):
            counter.note(event)
        return json_answer(200, known.write_answer(translation.caller, answer, translation.asked), dict(headers))


class _Stream:
    """Events in, events out, each as soon as it is there."""

    def __init__(
        self,
        request: web.BaseRequest,
        upstream: aiohttp.ClientResponse,
        translation: Translation,
        account: Account,
        counter: EventCounter,
    ) -> None:
        self._request = request
        self._upstream = upstream
        self._account = account
        self._counter = counter
        self._reader = StreamReader(translation.provider, translation.asked)
        self._writer: Writer = known.writer(translation.caller, translation.asked)
        self._begun = False
        self._pulse: asyncio.TimerHandle | None = None

    async def run(self, headers: Headers) -> web.StreamResponse:
        answer = begun_answer(self._upstream, 200, [*headers, *_STREAMED])
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
        except Broken as broken:
            self._account.trouble = broken.trouble
            last = self._said([known.broken("the provider's answer broke off")])
        finally:
            if self._pulse is not None:
                self._pulse.cancel()
        self._account.cut = not self._counter.seen.complete
        await answer.write_eof(last)
        return answer

    def _said(self, events: list[Event]) -> bytes:
        if self._account.listener is not None:
            self._account.listener.note(events)
        for event in events:
            self._counter.note(event)
            self._begun = self._begun or isinstance(event, Begun)
        return b"".join([self._writer.write(event) for event in _joined(events)])

    def _still_there(self, answer: web.StreamResponse) -> None:
        if self._begun and self._request.transport is not None and not self._request.transport.is_closing():
            loop = asyncio.get_running_loop()
            self._pulse = loop.call_later(_QUIET, self._still_there, answer)
            # A few bytes: they are taken at once, whether the caller reads them or not.
            task = loop.create_task(answer.write(self._writer.write(Waiting())))
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
    with contextlib.suppress(Broken):
        async for whole in without_key(pieces(upstream.content), going.key):
            said = _document(whole)
    # A provider that sends us elsewhere, or says nothing at all, has failed.
    fault = faults.read(said, upstream.status if upstream.status >= 400 else 502)
    counter.seen.error = faults.word(fault)
    status, body = known.write_fault(translation.caller, fault)
    return json_answer(status, body, dict(headers))


def _document(whole: bytes) -> object:
    try:
        return loads(whole)
    except Unreadable:
        return " ".join(whole[:400].decode("utf-8", "replace").split())


async def _whole(
    upstream: aiohttp.ClientResponse,
    going: Outgoing,
    translation: Translation,
    counter: EventCounter,
    *,
    streamed: bool,
) -> Answer:
    name = going.provider.name
    body = bytearray()
    try:
        async for piece in pieces(upstream.content):
            body += piece
            if len(body) > _LONGEST_BODY:
                raise Refused(502, ErrorKind.API, f"the answer of provider {name} has no end.", Trouble.BROKEN)
    except Broken as broken:
        sentence = f"the answer of provider {name} broke off; try again."
        raise Refused(502, ErrorKind.API, sentence, broken.trouble) from None
    try:
        if streamed:
            reader = StreamReader(translation.provider, translation.asked)
            return gathered([*reader.feed(bytes(body)), *reader.end()])
        return known.read_answer(translation.provider, loads(bytes(body)), translation.asked)
    except ModelFailed as failed:
        counter.seen.error = faults.word(failed.fault)
        raise Refused(502, ErrorKind.API, f"provider {name} failed: {failed.fault.message}") from None
    except Unreadable as fault:
        raise Refused(
            502, ErrorKind.API, f"the answer of provider {name} cannot be read: {fault}.", Trouble.UNREADABLE
        ) from None


async def _as_stream(
    request: web.BaseRequest, answer: Answer, translation: Translation, counter: EventCounter, headers: Headers
) -> web.StreamResponse:
    """For a provider that answers at once although it was asked for a stream."""
    writer = known.writer(translation.caller, translation.asked)
    events = list(events_of(answer))
    for event in events:
        counter.note(event)
    response = web.StreamResponse(status=200, headers=[*headers, *_STREAMED])
    await response.prepare(request)
    await response.write_eof(b"".join(writer.write(event) for event in events))
    return response
