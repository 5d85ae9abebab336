"""Sends an admitted request to the providers of its route in turn, until one answers.

The next provider is asked when one is overloaded, limited, broken or unreachable, and when its key is missing or
refused; a request that is wrong would be wrong everywhere. It is asked only as long as nothing was sent to the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace

import aiohttp
from aiohttp import web

from legion.gateway.access.admission import (
    COUNTING,
    Admission,
    Endpoint,
    Refused,
    json_answer,
    model_in_path,
    model_of,
    unreadable,
)
from legion.gateway.access.keys import Keys, NoKey
from legion.gateway.access.provider import KeyStyle, Provider, ProviderDialect
from legion.gateway.access.routing import Chooser, GatewayRouteTarget
from legion.gateway.access.token_exchange import Exchange
from legion.gateway.accounting.ledger import RequestError
from legion.gateway.accounting.limits import REFUSED, seconds_until_reset
from legion.gateway.accounting.meter import Meter, RequestRecord
from legion.gateway.dialects import signatures
from legion.gateway.dialects.messages import (
    DocumentPart,
    ImagePart,
    ModelErrorKind,
    ModelRequest,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from legion.gateway.dialects.registry import Dialect
from legion.gateway.http import translate
from legion.gateway.http.forward import Forwarder, Outgoing
from legion.gateway.http.translate import Translation, Translator
from legion.gateway.json_text import Json, NestedTooDeeply, UnreadableMessage, dumps, loads, names_two_models

log = logging.getLogger("legion.gateway")

_KEY_REFUSED = (401, 403)
_UNAVAILABLE = (408, *REFUSED)
_FREE = (Endpoint.MODELS, *COUNTING)
_CONVERSATION_HEADERS = ("x-claude-code-session-id", "session_id", "session-id", "x-session-id", "conversation_id")


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """A request as it came."""

    endpoint: Endpoint
    method: str
    path: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    facts: Json | None
    """The parsed body; None where it is not a JSON object."""
    conversation: str
    """Empty for callers that do not name it."""

    @property
    def model(self) -> str:
        return model_of(self.facts)


def read_incoming(endpoint: Endpoint, request: web.BaseRequest, body: bytes) -> Incoming:
    """Raises Refused for a body that could be read in two ways, or is nested too deeply to be read."""
    facts = _parsed(body) if body else None
    if facts is not None and endpoint.dialect is Dialect.GEMINI:
        stream = endpoint is Endpoint.STREAM_GENERATE
        facts = {**facts, "model": model_in_path(request.path), "stream": stream}
    return Incoming(
        endpoint=endpoint,
        method=request.method,
        path=request.raw_path,
        headers=request.raw_headers,
        body=body,
        facts=facts,
        conversation=_conversation(request.headers, facts),
    )


def _parsed(body: bytes) -> Json | None:
    try:
        facts = loads(body)
        if names_two_models(body, facts):
            sentence = "the request names `model` more than once; name it once."
            raise Refused(400, ModelErrorKind.INVALID, sentence)
    except NestedTooDeeply as fault:
        raise unreadable(fault) from None
    except UnreadableMessage:
        return None
    return facts


def _conversation(headers: Mapping[str, str], facts: Json | None) -> str:
    for name in _CONVERSATION_HEADERS:
        if headers.get(name):
            return headers[name]
    named = facts.get("prompt_cache_key") if facts is not None else None
    return named if isinstance(named, str) else ""


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """One request at one provider of its route."""

    incoming: Incoming
    target: GatewayRouteTarget
    provider: Provider
    model: str
    """In the provider's own name."""
    conversation: str
    is_last: bool
    """The route has no other provider."""


class ProviderDispatch:
    def __init__(
        self, admission: Admission, meter: Meter, keys: Keys, exchange: Exchange, forwarder: Forwarder
    ) -> None:
        self._admission = admission
        self._meter = meter
        self._keys = keys
        self._exchange = exchange
        self._forwarder = forwarder
        self._translator = Translator(forwarder)
        self._gates = RateGates()
        self._chooser = Chooser()

    async def dispatch(self, request: web.BaseRequest, incoming: Incoming, record: RequestRecord) -> web.StreamResponse:
        """The answer of the first provider that gives one, else the failure of the last."""
        conversation = incoming.conversation or record.pass_.agent
        targets = self._chooser.order(self._admission.targets(record.pass_, incoming.model), conversation)
        for number, target in enumerate(targets, 1):
            provider = self._admission.provider(target.provider)
            attempt = _Attempt(
                incoming=incoming,
                target=target,
                provider=provider,
                model=provider.model_for(target.model or incoming.model),
                conversation=conversation,
                is_last=number == len(targets),
            )
            answer = await self._try(request, attempt, record)
            if answer is not None:
                return answer
        raise AssertionError("the last provider of a route answers or raises")

    async def _try(
        self, request: web.BaseRequest, attempt: _Attempt, record: RequestRecord
    ) -> web.StreamResponse | None:
        """The provider's answer; None where the next provider is to be asked. Raises Refused."""
        provider, endpoint = attempt.provider, attempt.incoming.endpoint
        record.provider, record.model = provider.name, attempt.model
        if endpoint not in _FREE:
            self._admission.admit_price(record.pass_, attempt.model)
        try:
            key = await self._key(provider)
        except Refused as refused:
            self._skip(attempt, record, refused)
            return None
        record.redact(key)
        if endpoint in COUNTING and endpoint.dialect.value != provider.kind.value:
            record.status = 200
            return json_answer(200, _estimate(attempt.incoming))
        outgoing, translation = _prepare(attempt, key)
        async with self._gates.through(provider):
            try:
                upstream = await self._forwarder.ask(outgoing)
            except Refused as refused:
                self._skip(attempt, record, refused)
                return None
            try:
                if self._failed(attempt, upstream, record) and not attempt.is_last:
                    return None
                return await self._pass_back(request, upstream, outgoing, translation, record)
            finally:
                # A connection with unread bytes cannot be used again. Closing it also stops the provider's answer.
                upstream.close()
                if upstream.status == 401 and key is not None:
                    self._keys.drop(provider, key)
                    self._exchange.drop(key)

    async def _key(self, provider: Provider) -> str | None:
        try:
            key = await self._keys.of(provider)
            if key is None or provider.auth is not KeyStyle.EXCHANGED:
                return key
            return await self._exchange.token(provider, key)
        except NoKey as missing:
            sentence = f"no key for provider {provider.name}: {missing.message}"
            raise Refused(400, ModelErrorKind.INVALID, sentence, RequestError.NO_KEY) from None

    def _skip(self, attempt: _Attempt, record: RequestRecord, refused: Refused) -> None:
        """The provider could not be asked. Raises the refusal where it is the last of its route."""
        assert refused.error is not None
        name = attempt.provider.name
        self._chooser.failed(name)
        if attempt.is_last and record.skipped:
            sentence = f"{refused.sentence} Skipped before it: {', '.join(record.skipped)}."
            raise Refused(refused.status, refused.kind, sentence, refused.error)
        if attempt.is_last:
            raise refused
        if refused.error is RequestError.NO_KEY:
            self._meter.skip(record, refused.status, refused.error)
            log.warning("Skipped provider %s of a route: %s", name, refused.sentence)
        record.skipped.append(f"{name} ({refused.error.value})")

    def _failed(self, attempt: _Attempt, upstream: aiohttp.ClientResponse, record: RequestRecord) -> bool:
        """Whether another provider may answer better than this one did. Records why this one did not."""
        name, status = attempt.provider.name, upstream.status
        if status < 400:
            self._chooser.answered(attempt.target, attempt.conversation)
        key_refused = status in _KEY_REFUSED
        if not (key_refused or status in _UNAVAILABLE or status >= 500):
            return False
        self._chooser.failed(name, seconds_until_reset(upstream.headers, status))
        if not attempt.is_last:
            self._forwarder.record_limit(upstream, attempt.provider, record)
            if key_refused:
                self._meter.skip(record, status, RequestError.KEY_REFUSED)
                log.warning("Skipped provider %s of a route: it refused the key (%s).", name, status)
            record.skipped.append(f"{name} ({RequestError.KEY_REFUSED.value if key_refused else status})")
        return True

    async def _pass_back(
        self,
        request: web.BaseRequest,
        upstream: aiohttp.ClientResponse,
        outgoing: Outgoing,
        translation: Translation | None,
        record: RequestRecord,
    ) -> web.StreamResponse:
        if translation is not None:
            return await self._translator.pass_back(request, upstream, outgoing, translation, record)
        if (
            outgoing.path == "/v1/models"
            and outgoing.provider.kind is not ProviderDialect.ANTHROPIC
            and upstream.status == 200
        ):
            record.status = 200
            return json_answer(200, models_list(await upstream.read()))
        return await self._forwarder.pass_back(request, upstream, outgoing, record)


def _estimate(incoming: Incoming) -> Json:
    try:
        if incoming.endpoint is Endpoint.COUNT_CONTENT:
            return count_content(translate.request_of(Dialect.GEMINI, _counted(incoming.facts)))
        return count_tokens(translate.request_of(Dialect.ANTHROPIC, incoming.facts))
    except NestedTooDeeply as fault:
        raise unreadable(fault) from None


def _counted(facts: Json | None) -> Json | None:
    """The request that is to be counted, which the Gemini API may wrap."""
    inner = facts.get("generateContentRequest") if facts is not None else None
    return {**inner, "model": ""} if isinstance(inner, dict) else facts


def _prepare(attempt: _Attempt, key: str | None) -> tuple[Outgoing, Translation | None]:
    """The request as it came where the provider uses the caller's dialect, else translated."""
    incoming, provider = attempt.incoming, attempt.provider
    path = incoming.path
    try:
        if incoming.endpoint is Endpoint.MODELS:
            path = path if provider.kind is ProviderDialect.ANTHROPIC else path.partition("?")[0]
        elif incoming.endpoint.dialect.value != provider.kind.value:
            request = replace(translate.request_of(incoming.endpoint.dialect, incoming.facts), model=attempt.model)
            return translate.outgoing(request, incoming.endpoint.dialect, provider, key, attempt.conversation)
        body, hides_usage = _own_body(attempt)
    except NestedTooDeeply as fault:
        raise unreadable(fault) from None
    outgoing = Outgoing(
        method=incoming.method,
        path=path,
        headers=incoming.headers,
        body=body,
        provider=provider,
        key=key,
        hides_usage=hides_usage,
    )
    return outgoing, None


def _own_body(attempt: _Attempt) -> tuple[bytes, bool]:
    """The caller's own bytes, unless the model's name, foreign thinking or the request for usage has to change."""
    incoming, provider = attempt.incoming, attempt.provider
    facts, changed, hides = incoming.facts, False, False
    if facts is None or incoming.endpoint is Endpoint.MODELS:
        return incoming.body, False
    if attempt.model != incoming.model:
        facts, changed = {**facts, "model": attempt.model}, True
    if provider.kind is ProviderDialect.ANTHROPIC and signatures.has_foreign(facts):
        facts, changed = signatures.without_foreign(facts), True
    if incoming.endpoint is Endpoint.CHAT and facts.get("stream") is True:
        options = facts.get("stream_options") or {}
        if isinstance(options, dict) and options.get("include_usage") is not True:
            facts, changed, hides = {**facts, "stream_options": {**options, "include_usage": True}}, True, True
    return (dumps(facts), hides) if changed else (incoming.body, False)


# Limits how many requests a provider gets at the same time and within a minute. Further requests wait in order.

_MINUTE = 60.0


class _RateGate:
    def __init__(self) -> None:
        self.open = 0
        self.changed = asyncio.Condition()
        self.starts: deque[float] = deque()


class RateGates:
    def __init__(self) -> None:
        self._gates: dict[str, _RateGate] = {}

    def through(self, provider: Provider) -> contextlib.AbstractAsyncContextManager[None]:
        """Wait until the provider may be asked, and hold the place until the answer has ended."""
        unlimited = provider.at_once is None and provider.per_minute is None
        return contextlib.nullcontext() if unlimited else self._held(provider)

    @contextlib.asynccontextmanager
    async def _held(self, provider: Provider) -> AsyncIterator[None]:
        gate = self._gates.setdefault(provider.name, _RateGate())
        async with gate.changed:
            while provider.at_once is not None and gate.open >= provider.at_once:
                await gate.changed.wait()
            gate.open += 1
        try:
            await self._pace(gate, provider.per_minute)
            yield
        finally:
            gate.open -= 1
            async with gate.changed:
                gate.changed.notify_all()

    async def _pace(self, gate: _RateGate, per_minute: int | None) -> None:
        while per_minute is not None:
            now = time.monotonic()
            while gate.starts and gate.starts[0] <= now - _MINUTE:
                gate.starts.popleft()
            if len(gate.starts) < per_minute:
                gate.starts.append(now)
                return
            await asyncio.sleep(gate.starts[0] + _MINUTE - now)


# Token estimates and model lists, mostly in Anthropic's form, for providers that have no such endpoints.

_CHARACTERS_PER_TOKEN = 3.6
_IMAGE = 1500
_DOCUMENT = 6000
_PER_MESSAGE = 4


def count_tokens(request: ModelRequest) -> Json:
    """An estimate, marked as such."""
    return {"input_tokens": _estimated(request), "estimated": True}


def count_content(request: ModelRequest) -> Json:
    """The same in the form of the Gemini API, which has no place for the mark."""
    return {"totalTokens": _estimated(request)}


def _estimated(request: ModelRequest) -> int:
    characters = sum(len(one.text) for one in request.system)
    characters += sum(len(dumps(tool.schema)) + len(tool.name) + len(tool.description) for tool in request.tools)
    tokens = characters / _CHARACTERS_PER_TOKEN + _PER_MESSAGE * len(request.messages)
    tokens += sum(_tokens(message.parts) for message in request.messages)
    return max(1, round(tokens))


def _tokens(parts: Iterable[Part]) -> float:
    total = 0.0
    for part in parts:
        match part:
            case TextPart() | ThinkingPart():
                total += len(part.text) / _CHARACTERS_PER_TOKEN
            case ToolCallPart():
                total += (len(part.name) + len(part.input)) / _CHARACTERS_PER_TOKEN
            case ImagePart():
                total += _IMAGE
            case DocumentPart():
                total += _DOCUMENT
            case ToolResultPart():
                total += _tokens(part.content)
    return total


def models_list(body: bytes) -> Json:
    """The provider's list with the fields of both Anthropic and OpenAI."""
    try:
        found = loads(body).get("data")
    except UnreadableMessage:
        found = None
    names = [str(one["id"]) for one in found or () if isinstance(one, dict) and "id" in one]
    data = [
        {
            "id": name,
            "object": "model",
            "type": "model",
            "display_name": name,
            "created": 0,
            "created_at": "1970-01-01T00:00:00Z",
            "owned_by": "provider",
        }
        for name in names
    ]
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return {"object": "list", "data": data, "has_more": False, **ends}
