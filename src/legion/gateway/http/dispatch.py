"""Leads an admitted request to its provider: which one, with which key, as it is or translated, and where else then.

Another provider is tried only as long as nothing was sent to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import aiohttp
from aiohttp import web

from legion.gateway.access.admission import Admission, Endpoint, model_of
from legion.gateway.access.answers import ErrorKind, Refused, json_answer
from legion.gateway.access.keys import Keys, NoKey
from legion.gateway.access.provider import KeyStyle, Provider, ProviderDialect
from legion.gateway.access.routing import Chooser, GatewayRouteTarget
from legion.gateway.access.token_exchange import Exchange
from legion.gateway.accounting.ledger import RequestError
from legion.gateway.accounting.limits import REFUSED, seconds_until_reset
from legion.gateway.accounting.meter import RequestRecord
from legion.gateway.dialects import signatures
from legion.gateway.dialects.registry import Dialect
from legion.gateway.http import estimates, translate
from legion.gateway.http.forward import Forwarder, Outgoing
from legion.gateway.http.rate_gate import RateGates
from legion.gateway.http.translate import Translation, Translator
from legion.gateway.json_text import Json, UnreadableMessage, dumps, loads

_ELSEWHERE = (408, *REFUSED)
"""After these and every fault of its own, another provider may be asked; a bad request is bad everywhere."""
_UNANSWERED = (RequestError.UNREACHABLE, RequestError.IDLE)
_CONVERSATIONS = ("x-claude-code-session-id", "session_id", "session-id", "x-session-id", "conversation_id")
"""Headers by which programs name a conversation."""


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """A request as it came."""

    route: Endpoint
    method: str
    path: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    facts: Json | None
    """What the body says; None where it is no object."""
    conversation: str
    """Empty for callers who do not name it."""

    @property
    def model(self) -> str:
        return model_of(self.facts)


def read_incoming(route: Endpoint, request: web.BaseRequest, body: bytes) -> Incoming:
    facts = None
    if body:
        try:
            facts = loads(body)
        except UnreadableMessage:
            facts = None
    return Incoming(
        route=route,
        method=request.method,
        path=request.raw_path,
        headers=request.raw_headers,
        body=body,
        facts=facts,
        conversation=_conversation(request.headers, facts),
    )


def _conversation(headers: Mapping[str, str], facts: Json | None) -> str:
    for name in _CONVERSATIONS:
        if headers.get(name):
            return headers[name]
    named = facts.get("prompt_cache_key") if facts is not None else None
    return named if isinstance(named, str) else ""


class _TryNextProvider(Exception):
    """This provider does not answer now, and another may."""


class ProviderDispatch:
    def __init__(self, admission: Admission, keys: Keys, exchange: Exchange, forwarder: Forwarder) -> None:
        self._admission = admission
        self._keys = keys
        self._exchange = exchange
        self._forwarder = forwarder
        self._translator = Translator(forwarder)
        self._gates = RateGates()
        self.chooser = Chooser()

    async def lead(self, request: web.BaseRequest, incoming: Incoming, record: RequestRecord) -> web.StreamResponse:
        conversation = incoming.conversation or record.pass_.agent
        targets = self.chooser.order(self._admission.targets(record.pass_, incoming.model), conversation)
        for target in targets[:-1]:
            try:
                return await self._try(request, incoming, target, conversation, record, final=False)
            except _TryNextProvider:
                continue
        return await self._try(request, incoming, targets[-1], conversation, record, final=True)

    async def _try(
        self,
        request: web.BaseRequest,
        incoming: Incoming,
        target: GatewayRouteTarget,
        conversation: str,
        record: RequestRecord,
        *,
        final: bool,
    ) -> web.StreamResponse:
        provider = self._admission.provider(target.provider)
        model = provider.model_for(target.model or incoming.model)
        record.provider, record.model = provider.name, model
        if incoming.route not in (Endpoint.MODELS, Endpoint.COUNT_TOKENS):
            self._admission.admit_price(record.pass_, model)
        key = await self._key(provider)
        if record.recorder is not None:
            record.recorder.secrets.add(key or "")
        if incoming.route is Endpoint.COUNT_TOKENS and provider.kind is not ProviderDialect.ANTHROPIC:
            record.status = 200
            return json_answer(200, estimates.count_tokens(translate.request_of(Dialect.ANTHROPIC, incoming.facts)))
        outgoing, translation = _prepared(incoming, provider, model, key, conversation)
        async with self._gates.through(provider):
            upstream = await self._ask(outgoing, final=final)
            try:
                if upstream.status in _ELSEWHERE or upstream.status >= 500:
                    self.chooser.failed(provider.name, seconds_until_reset(upstream.headers, upstream.status))
                    if not final:
                        self._forwarder.tell_limit(upstream, outgoing, record)
                        raise _TryNextProvider
                elif upstream.status < 400:
                    self.chooser.answered(target, conversation)
                return await self._pass_back(request, upstream, outgoing, translation, record)
            finally:
                # What was not read to its end cannot be used again, and the provider learns that nobody listens.
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
            raise Refused(
                400, ErrorKind.INVALID, f"no key for provider {provider.name}: {missing.message}", RequestError.NO_KEY
            ) from None

    async def _ask(self, outgoing: Outgoing, *, final: bool) -> aiohttp.ClientResponse:
        try:
            return await self._forwarder.ask(outgoing)
        except Refused as refused:
            if refused.error in _UNANSWERED:
                self.chooser.failed(outgoing.provider.name)
                if not final:
                    raise _TryNextProvider from None
            raise

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
            return json_answer(200, estimates.models_list(await upstream.read()))
        return await self._forwarder.pass_back(request, upstream, outgoing, record)


def _prepared(
    incoming: Incoming, provider: Provider, model: str, key: str | None, conversation: str
) -> tuple[Outgoing, Translation | None]:
    """As it came where the provider speaks the caller's dialect, else translated."""
    path = incoming.path
    if incoming.route is Endpoint.MODELS:
        path = path if provider.kind is ProviderDialect.ANTHROPIC else path.partition("?")[0]
    elif incoming.route.dialect.value != provider.kind.value:
        request = replace(translate.request_of(incoming.route.dialect, incoming.facts), model=model)
        return translate.outgoing(request, incoming.route.dialect, provider, key, conversation)
    body, hides = _own_body(incoming, provider, model)
    going = Outgoing(
        method=incoming.method,
        path=path,
        headers=incoming.headers,
        body=body,
        provider=provider,
        key=key,
        hides_usage=hides,
    )
    return going, None


def _own_body(incoming: Incoming, provider: Provider, model: str) -> tuple[bytes, bool]:
    """The caller's own bytes, but for another name of the model, foreign thoughts, and a count that we need."""
    facts, changed, hides = incoming.facts, False, False
    if facts is None or incoming.route is Endpoint.MODELS:
        return incoming.body, False
    if model != incoming.model:
        facts, changed = {**facts, "model": model}, True
    if provider.kind is ProviderDialect.ANTHROPIC and signatures.has_foreign(facts):
        facts, changed = signatures.without_foreign(facts), True
    if incoming.route is Endpoint.CHAT and facts.get("stream") is True:
        options = facts.get("stream_options") or {}
        if isinstance(options, dict) and options.get("include_usage") is not True:
            facts, changed, hides = {**facts, "stream_options": {**options, "include_usage": True}}, True, True
    return (dumps(facts), hides) if changed else (incoming.body, False)
