"""The paths under /legion/: an agent program reads its own provider and budget, and chooses a model for its run.

Address and key of the provider are the person's choice and cannot be changed here.
"""

from __future__ import annotations

import time
from dataclasses import replace

from aiohttp import web

from legion.gateway.access.admission import Admission, Endpoint
from legion.gateway.access.answers import Refused, json_answer, unreadable
from legion.gateway.accounting.meter import Meter
from legion.gateway.dialects.messages import ModelErrorKind
from legion.gateway.files.passes import Pass
from legion.gateway.http.dispatch import Incoming
from legion.gateway.json_text import Json, NestedTooDeeply, UnreadableMessage, dumps, loads

_NOT_YOURS = ("target_url", "api_key", "api_format")
_MAX_RUNS = 10_000


class Control:
    def __init__(self, admission: Admission, meter: Meter) -> None:
        self._admission = admission
        self._meter = meter
        self._models: dict[str, str] = {}
        """By run; lost when the gateway ends."""

    def answer(self, method: str, path: str, pass_: Pass, body: bytes) -> web.Response:
        match method, path:
            case "GET", "/legion/status":
                return json_answer(200, self._status(pass_))
            case "GET", "/legion/providers":
                return json_answer(200, self._providers(pass_))
            case "POST", "/legion/config":
                self._configure(pass_, body)
                return json_answer(200, {"ok": True})
            case _:
                raise AssertionError(f"{method} {path} has a row and no answer")

    def apply(self, pass_: Pass, incoming: Incoming) -> Incoming:
        """The request with the model that its run has chosen. Raises Refused."""
        model = self._models.get(pass_.run)
        if model is None or incoming.facts is None or incoming.endpoint is Endpoint.MODELS:
            return incoming
        facts = {**incoming.facts, "model": model}
        try:
            return replace(incoming, facts=facts, body=dumps(facts))
        except NestedTooDeeply as fault:
            raise unreadable(fault) from None

    def _status(self, pass_: Pass) -> Json:
        provider = self._admission.provider(pass_.provider)
        return {
            "target_url": provider.url,
            "api_format": provider.kind.value,
            "model": self._models.get(pass_.run),
            "configured": True,
            "provider": provider.name,
            "run": pass_.run,
            "ticket": pass_.ticket,
            "budget_usd": pass_.budget_usd,
            "spent_usd": round(pass_.spent_usd + self._meter.spent(pass_.run), 6),
            "last": self._last(pass_),
        }

    def _last(self, pass_: Pass) -> Json | None:
        """How the run's last request ended. Drivers read it: programs do not report that reliably."""
        last = self._meter.last(pass_.run)
        if last is None:
            return None
        return {
            "status": last.status,
            "error": last.error,
            "failures": last.failures,
            "failing_for": round(time.monotonic() - last.failing_since, 3) if last.failures else 0.0,
            "open": self._meter.open_count(pass_.run),
        }

    def _providers(self, pass_: Pass) -> Json:
        """Only the run's own provider: an agent need not know the others."""
        provider = self._admission.provider(pass_.provider)
        return {"providers": [{"name": provider.name, "kind": provider.kind.value, "url": provider.url}]}

    def _configure(self, pass_: Pass, body: bytes) -> None:
        try:
            wanted = loads(body)
        except UnreadableMessage as fault:
            raise unreadable(fault) from None
        if any(wanted.get(name) is not None for name in _NOT_YOURS):
            raise Refused(
                403, ModelErrorKind.PERMISSION, "address and key are the person's choice; use `legion provider add`."
            )
        unknown = [name for name in wanted if name not in ("model", *_NOT_YOURS)]
        if unknown:
            sentence = f"{unknown[0][:40]!r} cannot be set here; only `model` can."
            raise Refused(400, ModelErrorKind.INVALID, sentence)
        model = wanted.get("model")
        if model is not None and not isinstance(model, str):
            raise Refused(400, ModelErrorKind.INVALID, "`model` must be a text; name a model.")
        if not model:
            self._models.pop(pass_.run, None)
            return
        self._admission.admit(Endpoint.MESSAGES, pass_, model)
        if len(self._models) >= _MAX_RUNS:
            del self._models[next(iter(self._models))]
        self._models[pass_.run] = model
