"""Checks a request before it is sent: its path, the caller's pass, the models and the budget. Reads no key.

Errors raised while a request is handled:

    Exception
      Refused              the gateway answers itself, with a status and one sentence
      UpstreamBroken       the connection to the provider broke while its answer was read (http.forward)
      ModelFailed          a provider's answer that is an error although its status is 200 (dialects.messages)
      UnreadableMessage    bytes or fields that the dialect does not allow (json_text)
    LegionError            each also reaches a person as it is
      NoKey                a provider's key is missing (access.keys)
      Damaged              a file of the gateway's folder cannot be used (files.folder)
      GatewayFailed        the process did not start (lifecycle)

The caller only ever sees the first: `http` turns the others into a `Refused`, or into an error event where the answer
has already started. Two enums describe an error and are not raised: `ModelErrorKind` is what a dialect calls it,
`RequestError` is what the ledger calls it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from functools import cached_property

from aiohttp import web

from legion.gateway.access.provider import Provider, parse_providers
from legion.gateway.access.routing import GatewayRouteTarget, parse_routes, route_for
from legion.gateway.accounting.ledger import RequestError
from legion.gateway.accounting.meter import Meter
from legion.gateway.dialects import registry
from legion.gateway.dialects.messages import ModelError, ModelErrorKind
from legion.gateway.dialects.registry import Dialect
from legion.gateway.files.folder import CachedFile, Damaged, GatewayFolder
from legion.gateway.files.passes import Granted, Pass, parse_pass, pass_file
from legion.gateway.json_text import Json, UnreadableMessage, dumps

_NO_RETRY = {"x-should-retry": "false"}


class Refused(Exception):
    """The request ends here, with this status and one sentence."""

    def __init__(self, status: int, kind: ModelErrorKind, sentence: str, error: RequestError | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.kind = kind
        self.sentence = sentence
        self.error = error or (RequestError.BAD_REQUEST if status < 500 else None)
        """None where the ledger takes the provider's own name for the error."""

    def answer(self, dialect: Dialect = Dialect.ANTHROPIC) -> web.Response:
        _, body = registry.write_error(dialect, ModelError(kind=self.kind, message=f"legion: {self.sentence}"))
        # Programs retry after some refusals, unless a header forbids it.
        return json_answer(self.status, body, _NO_RETRY if self.status == 403 else {})


def unreadable(fault: UnreadableMessage) -> Refused:
    """The refusal of a request that its dialect does not allow."""
    return Refused(400, ModelErrorKind.INVALID, f"the request cannot be read: {fault}.")


def json_answer(status: int, facts: Json, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=dumps(facts), content_type="application/json", headers=headers)


def healthy(release: str) -> web.Response:
    return json_answer(200, {"status": "healthy", "release": release})


_HOSTS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?", re.IGNORECASE)
_DATED = re.compile(r"-\d{8}")


class Endpoint(Enum):
    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"
    MODELS = "models"
    CHAT = "chat"
    RESPONSES = "responses"
    GENERATE = "generate"
    """The Gemini API, answered at once."""
    STREAM_GENERATE = "stream_generate"
    COUNT_CONTENT = "count_content"

    @property
    def dialect(self) -> Dialect:
        """The caller's dialect."""
        return _DIALECTS.get(self, Dialect.ANTHROPIC)


_DIALECTS = {
    Endpoint.CHAT: Dialect.CHAT,
    Endpoint.RESPONSES: Dialect.RESPONSES,
    Endpoint.GENERATE: Dialect.GEMINI,
    Endpoint.STREAM_GENERATE: Dialect.GEMINI,
    Endpoint.COUNT_CONTENT: Dialect.GEMINI,
}
COUNTING = (Endpoint.COUNT_TOKENS, Endpoint.COUNT_CONTENT)
"""They cost nothing."""


@dataclass(frozen=True)
class GatewayRoute:
    path: str
    methods: tuple[str, ...]
    endpoint: Endpoint | None = None
    """None: the gateway answers by itself."""
    needs_pass: bool = True

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.path.replace("{model}", _MODEL).replace("{name}", r"[\w@:-][\w.@:-]*"), re.ASCII)


_NOTHING_HERE = (
    "there is nothing at this path; use /v1/messages, /v1/chat/completions, /v1/responses, /v1/models, "
    "/v1beta/models/MODEL:generateContent, or /legion/status."
)

_MODEL = r"(?P<model>[\w@-][\w.@-]*)"
_GEMINI_MODEL = f"/v1beta/models/{_MODEL}"

# Nothing else is forwarded: another path or method of a provider might send the key back to the caller.
ROUTES = (
    GatewayRoute("/v1/messages", ("POST",), Endpoint.MESSAGES),
    GatewayRoute("/v1/messages/count_tokens", ("POST",), Endpoint.COUNT_TOKENS),
    GatewayRoute("/v1/chat/completions", ("POST",), Endpoint.CHAT),
    GatewayRoute("/v1/responses", ("POST",), Endpoint.RESPONSES),
    GatewayRoute("/v1beta/models/{model}:generateContent", ("POST",), Endpoint.GENERATE),
    GatewayRoute("/v1beta/models/{model}:streamGenerateContent", ("POST",), Endpoint.STREAM_GENERATE),
    GatewayRoute("/v1beta/models/{model}:countTokens", ("POST",), Endpoint.COUNT_CONTENT),
    GatewayRoute("/v1/models", ("GET", "HEAD"), Endpoint.MODELS),
    GatewayRoute("/v1/models/{name}", ("GET", "HEAD"), Endpoint.MODELS),
    GatewayRoute("/legion/status", ("GET",)),
    GatewayRoute("/legion/providers", ("GET",)),
    GatewayRoute("/legion/config", ("POST",)),
    GatewayRoute("/", ("GET", "HEAD"), needs_pass=False),
    GatewayRoute("/health", ("GET", "HEAD"), needs_pass=False),
)
"""All that the gateway answers, by the path as it was sent: nothing is decoded, and no dot is resolved."""


def route_of(method: str, path: str) -> GatewayRoute:
    """Raises Refused."""
    for known in ROUTES:
        if known.pattern.fullmatch(path):
            if method in known.methods:
                return known
            sentence = f"{path} takes {' or '.join(known.methods)}, not {method}."
            raise Refused(405, ModelErrorKind.INVALID, sentence, RequestError.METHOD)
    raise Refused(404, ModelErrorKind.NOT_FOUND, _NOTHING_HERE, RequestError.NO_SUCH_PATH)


def model_in_path(path: str) -> str:
    """The model that a path of the Gemini API names."""
    found = re.match(_GEMINI_MODEL, path, re.ASCII)
    return found["model"] if found is not None else ""


def model_of(facts: Json | None) -> str:
    """The model that a request names; empty where it names none."""
    model = facts.get("model") if facts is not None else None
    return model if isinstance(model, str) else ""


def token_of(headers: Mapping[str, str]) -> str:
    """The token that the caller sends."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return bearer.strip()
    return headers.get("x-api-key") or headers.get("x-goog-api-key", "")


class Admission:
    def __init__(self, folder: GatewayFolder, meter: Meter) -> None:
        self._folder = folder
        self._meter = meter
        self._passes: dict[str, CachedFile[Granted]] = {}
        self._providers = CachedFile(folder.providers, parse_providers)
        self._routes = CachedFile(folder.routes, parse_routes)

    def caller(self, headers: Mapping[str, str]) -> Pass:
        """The caller's pass. Raises Refused without one, and for web pages, whatever token they send."""
        if not _HOSTS.fullmatch(headers.get("host", "")) or "origin" in headers:
            sentence = "only programs of this machine may connect; use http://127.0.0.1."
            raise Refused(403, ModelErrorKind.PERMISSION, sentence, RequestError.FOREIGN)
        token = token_of(headers)
        known = self._passes.get(token) or CachedFile(pass_file(self._folder, token), parse_pass)
        try:
            pass_ = known.value().pass_
        except (FileNotFoundError, Damaged):
            self._passes.pop(token, None)
            sentence = "this token is not valid: its run has ended or never started."
            raise Refused(401, ModelErrorKind.AUTHENTICATION, sentence, RequestError.NO_PASS) from None
        self._passes[token] = known
        return pass_

    def admit(self, endpoint: Endpoint, pass_: Pass, model: str) -> None:
        """Raises Refused for a model that the pass does not name and for a budget that is used up."""
        if endpoint is Endpoint.MODELS:
            return
        if pass_.models is not None and not any(_matches(allowed, model) for allowed in pass_.models):
            raise Refused(
                403,
                ModelErrorKind.PERMISSION,
                f"model not allowed: {model or 'none named'}; this run may use {', '.join(pass_.models) or 'none'}.",
                RequestError.MODEL,
            )
        if pass_.budget_usd is None or endpoint in COUNTING:
            return
        spent = pass_.spent_usd + self._meter.spent(pass_.run)
        if spent >= pass_.budget_usd:
            raise Refused(
                400,
                ModelErrorKind.INVALID,
                f"budget reached: {_describe_budget(spent, pass_.budget_usd)}.",
                RequestError.BUDGET,
            )

    def admit_price(self, pass_: Pass, model: str) -> None:
        """Raises Refused for a model without a price, whose budget could not be enforced."""
        if pass_.budget_usd is not None and not self._meter.has_price(model):
            raise Refused(
                400,
                ModelErrorKind.INVALID,
                f"budget cannot be enforced: {model or 'the model'} has no price; add one to prices.toml or remove the "
                "budget.",
                RequestError.NO_PRICE,
            )

    def provider(self, name: str) -> Provider:
        try:
            return self._providers.value()[name]
        except (FileNotFoundError, KeyError):
            raise Refused(
                400,
                ModelErrorKind.INVALID,
                f"there is no provider {name}; add it with `legion provider add {name}` or choose another.",
                RequestError.NO_PROVIDER,
            ) from None
        except Damaged as fault:
            raise Refused(500, ModelErrorKind.API, fault.message, RequestError.NO_PROVIDER) from None

    def targets(self, pass_: Pass, model: str) -> tuple[GatewayRouteTarget, ...]:
        """Where the request may be sent, in order of preference."""
        try:
            routes = self._routes.value()
        except FileNotFoundError:
            routes = ()
        except Damaged as fault:
            raise Refused(500, ModelErrorKind.API, fault.message, RequestError.NO_PROVIDER) from None
        route = route_for(routes, pass_, model)
        if route.most_usd is None:
            return route.to
        fitting = tuple(one for one in route.to if self._costs_at_most(one, model, route.most_usd))
        if not fitting:
            raise Refused(
                400,
                ModelErrorKind.INVALID,
                f"no model within {route.most_usd:g} USD for {model or 'the request'}: raise the limit of its route, "
                "or add the price of a cheaper one to prices.toml.",
                RequestError.NO_PRICE,
            )
        return fitting

    def _costs_at_most(self, target: GatewayRouteTarget, model: str, most_usd: float) -> bool:
        provider = self.provider(target.provider)
        return self._meter.is_within(provider.model_for(target.model or model), most_usd)


def _describe_budget(spent: float, budget: float) -> str:
    if not budget:
        return "the ticket may spend nothing; raise its budget"
    return f"{_usd(spent)} of {_usd(budget)} USD are spent; raise the ticket's budget"


def _usd(amount: float) -> str:
    """Two decimals, or as many as a smaller amount needs."""
    return f"{amount:.2f}" if amount == 0 or amount >= 0.01 else f"{amount:.6f}".rstrip("0").rstrip(".")


def _matches(allowed: str, model: str) -> bool:
    """`*` stands for any characters, and a name without a date for every date."""
    if "*" in allowed:
        return fnmatchcase(model, allowed)
    return model.startswith(allowed) and (model == allowed or _DATED.fullmatch(model[len(allowed) :]) is not None)
