"""Routes from models to providers, and the order in which the providers of a route are tried.

The daemon writes the routes. Independent of HTTP: the caller reports how each attempt went.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from legion.gateway.files.folder import VERSION, Damaged, GatewayFolder, parse
from legion.gateway.files.passes import Pass
from legion.system import files

_FAILURES = 5
"""Failures in a row after which a provider is paused."""
_PAUSE = 30.0
_STICKY = 300.0
"""Seconds that a conversation stays with its provider: as long as providers cache its prompt."""
_MAX_CONVERSATIONS = 10_000


@dataclass(frozen=True, kw_only=True)
class GatewayRouteTarget:
    provider: str
    model: str = ""
    """Empty: the model of the request."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """Requests that match all fields are sent to `to`; the first route that matches counts."""

    to: tuple[GatewayRouteTarget, ...]
    model: str = "*"
    """The model of the request; `*` stands for any characters."""
    provider: str = ""
    """The provider of the run; empty: any."""
    agent: str = "*"
    role: str = "*"
    team: str = "*"
    """Labels of the pass."""
    most_usd: float | None = None
    """Targets whose model costs more for a million output tokens are left out; None: any price."""

    def fits(self, pass_: Pass, model: str) -> bool:
        labels = ((pass_.agent, self.agent), (pass_.role, self.role), (pass_.team, self.team), (model, self.model))
        return self.provider in ("", pass_.provider) and all(fnmatchcase(name, wanted) for name, wanted in labels)


def route_for(routes: Iterable[Route], pass_: Pass, model: str) -> Route:
    """The first route that matches; without one, the run's own provider at any price."""
    for route in routes:
        if route.fits(pass_, model):
            return route
    return Route(to=(GatewayRouteTarget(provider=pass_.provider),))


def write_routes(folder: GatewayFolder, routes: Iterable[Route]) -> None:
    """Replace the gateway's routes. A running gateway uses them from its next request on."""
    facts = [
        {
            "model": route.model,
            "provider": route.provider,
            "agent": route.agent,
            "role": route.role,
            "team": route.team,
            "most_usd": route.most_usd,
            "to": [{"provider": target.provider, "model": target.model} for target in route.to],
        }
        for route in routes
    ]
    files.write_atomic(folder.routes, json.dumps({"version": VERSION, "routes": facts}, indent=1))


def parse_routes(content: bytes, path: Path) -> tuple[Route, ...]:
    facts = parse(content, path)
    try:
        return tuple(
            Route(
                model=one["model"],
                provider=one["provider"],
                agent=one.get("agent", "*"),
                role=one.get("role", "*"),
                team=one.get("team", "*"),
                most_usd=one.get("most_usd"),
                to=tuple(GatewayRouteTarget(provider=to["provider"], model=to["model"]) for to in one["to"]),
            )
            for one in facts["routes"]
        )
    except (AttributeError, KeyError, TypeError):
        raise Damaged(f"{path} is damaged: have the daemon write it again.") from None


@dataclass
class _Health:
    failures: int = 0
    paused_until: float = 0.0


class Chooser:
    """Orders the targets of a route by earlier failures and by where the conversation was answered. Leaves none out."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._health: dict[str, _Health] = {}
        self._sticky: OrderedDict[str, tuple[GatewayRouteTarget, float]] = OrderedDict()

    def order(self, targets: tuple[GatewayRouteTarget, ...], conversation: str) -> list[GatewayRouteTarget]:
        """The conversation's last provider first, paused ones last."""
        if len(targets) == 1:
            return list(targets)
        now = self._now()
        last, until = self._sticky.get(conversation, (None, 0.0))
        return sorted(targets, key=lambda one: (self._paused(one.provider, now), one != last or until < now))

    def answered(self, target: GatewayRouteTarget, conversation: str) -> None:
        self._health.pop(target.provider, None)
        if conversation:
            self._sticky[conversation] = (target, self._now() + _STICKY)
            self._sticky.move_to_end(conversation)
            if len(self._sticky) > _MAX_CONVERSATIONS:
                self._sticky.popitem(last=False)

    def failed(self, provider: str, pause: float | None = None) -> None:
        """`pause`: seconds that the provider itself asked for."""
        health = self._health.setdefault(provider, _Health())
        health.failures += 1
        if pause is not None:
            health.paused_until = max(health.paused_until, self._now() + pause)
        elif health.failures >= _FAILURES:
            health.paused_until = self._now() + _PAUSE

    def _paused(self, provider: str, now: float) -> bool:
        health = self._health.get(provider)
        return health is not None and health.paused_until > now
