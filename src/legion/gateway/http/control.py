"""What a program may ask the gateway about itself, with its own token: where its requests go, and under which name.

It may choose another model for its own run. Where that is asked, and with which key, only the person decides.
"""

from __future__ import annotations

from dataclasses import replace

from aiohttp import web

from legion.gateway.access.admission import Admission, Endpoint
from legion.gateway.access.answers import ErrorKind, Refused, json_answer
from legion.gateway.accounting.ledger import RequestError
from legion.gateway.accounting.meter import Meter
from legion.gateway.files.passes import Pass
from legion.gateway.http.dispatch import Incoming
from legion.gateway.json_text import Json, UnreadableMessage, dumps, loads

_PREFIX = "/legion/"
_PERSONS = ("target_url", "api_key", "api_format")
_MOST_RUNS = 10_000
_NOTHING_HERE = "there is nothing at this path: ask for /legion/status, /legion/config or /legion/providers."


def is_control(path: str) -> bool:
    return path.startswith(_PREFIX)


class Control:
    def __init__(self, admission: Admission, meter: Meter) -> None:
        self._admission = admission
        self._meter = meter
        self._models: dict[str, str] = {}
        """By run; forgotten when the gateway ends."""

    def answer(self, method: str, path: str, pass_: Pass, body: bytes) -> web.Response:
        match method, path.removeprefix(_PREFIX):
            case "GET", "status":
                return json_answer(200, self._status(pass_))
            case "GET", "providers":
                return json_answer(200, self._providers(pass_))
            case "POST", "config":
                self._configure(pass_, body)
                return json_answer(200, {"ok": True})
            case _:
                raise Refused(404, ErrorKind.NOT_FOUND, _NOTHING_HERE, RequestError.NO_SUCH_PATH)

    def applied(self, pass_: Pass, incoming: Incoming) -> Incoming:
        """The request with the model that its run has chosen."""
        model = self._models.get(pass_.run)
        if model is None or incoming.facts is None or incoming.route is Endpoint.MODELS:
            return incoming
        facts = {**incoming.facts, "model": model}
        return replace(incoming, facts=facts, body=dumps(facts))

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
        }

    def _providers(self, pass_: Pass) -> Json:
        """Only its own: what else the person has is no business of an agent."""
        provider = self._admission.provider(pass_.provider)
        return {"providers": [{"name": provider.name, "kind": provider.kind.value, "url": provider.url}]}

    def _configure(self, pass_: Pass, body: bytes) -> None:
        try:
            wanted = loads(body)
        except UnreadableMessage as fault:
            raise Refused(400, ErrorKind.INVALID, f"the request cannot be read: {fault}.") from None
        if any(wanted.get(name) for name in _PERSONS):
            raise Refused(403, ErrorKind.PERMISSION, "address and key are the person's choice: `legion provider add`.")
        model = wanted.get("model")
        if model is not None and not isinstance(model, str):
            raise Refused(400, ErrorKind.INVALID, "`model` must be a name.")
        if not model:
            self._models.pop(pass_.run, None)
            return
        self._admission.admit(Endpoint.MESSAGES, pass_, model)
        if len(self._models) >= _MOST_RUNS:
            del self._models[next(iter(self._models))]
        self._models[pass_.run] = model
