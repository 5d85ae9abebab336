"""Routes: which model is asked where, and where else when that does not answer. Written by the daemon, read here.

Knows nothing of HTTP: whoever asks says how it went, and is told in which order to try.
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
"""In a row, after which a provider is left alone for a while."""
_REST = 30.0
_KEPT = 300.0
"""Seconds that a conversation stays where it was answered: as long as providers keep its prompt in their cache."""
_MOST_CONVERSATIONS = 10_000


@dataclass(frozen=True, kw_only=True)
class GatewayRouteTarget:
    provider: str
    model: str = ""
    """Empty: the one that was asked for."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """The first that fits counts."""

    to: tuple[GatewayRouteTarget, ...]
    model: str = "*"
    """Of the request; `*` stands for any letters."""
    provider: str = ""
    """Of the run; empty: any."""
    agent: str = "*"
    role: str = "*"
    team: str = "*"
    """Of the pass."""
    most_usd: float | None = None
    """Targets whose model costs more for a million tokens that it writes are passed over; None: at any price."""

    def fits(self, pass_: Pass, model: str) -> bool:
        labels = ((pass_.agent, self.agent), (pass_.role, self.role), (pass_.team, self.team), (model, self.model))
        return self.provider in ("", pass_.provider) and all(fnmatchcase(name, wanted) for name, wanted in labels)


def route_for(routes: Iterable[Route], pass_: Pass, model: str) -> Route:
    """The first that fits; without one, the run's own provider at any price."""
    for route in routes:
        if route.fits(pass_, model):
            return route
    return Route(to=(GatewayRouteTarget(provider=pass_.provider),))


def write_routes(folder: GatewayFolder, routes: Iterable[Route]) -> None:
    """Replace what the gateway knows. A running gateway sees it with its next request."""
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
    files.write_whole(folder.routes, json.dumps({"version": VERSION, "routes": facts}, indent=1))


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
    rests_until: float = 0.0


class Chooser:
    """Remembers who failed and where conversations went, and orders targets by it. Nobody is left out for good."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._health: dict[str, _Health] = {}
        self._homes: OrderedDict[str, tuple[GatewayRouteTarget, float]] = OrderedDict()

    def order(self, targets: tuple[GatewayRouteTarget, ...], conversation: str) -> list[GatewayRouteTarget]:
        """The home of the conversation first, those who rest last."""
        if len(targets) == 1:
            return list(targets)
        now = self._now()
        home, until = self._homes.get(conversation, (None, 0.0))
        ordered = sorted(targets, key=lambda one: (self._rests(one.provider, now), one != home or until < now))
        return ordered

    def answered(self, target: GatewayRouteTarget, conversation: str) -> None:
        self._health.pop(target.provider, None)
        if conversation:
            self._homes[conversation] = (target, self._now() + _KEPT)
            self._homes.move_to_end(conversation)
            if len(self._homes) > _MOST_CONVERSATIONS:
                self._homes.popitem(last=False)

    def failed(self, provider: str, rest: float | None = None) -> None:
        """`rest`: seconds that it asked for itself."""
        health = self._health.setdefault(provider, _Health())
        health.failures += 1
        if rest is not None:
            health.rests_until = max(health.rests_until, self._now() + rest)
        elif health.failures >= _FAILURES:
            health.rests_until = self._now() + _REST

    def resting(self, provider: str) -> bool:
        return self._rests(provider, self._now())

    def _rests(self, provider: str, now: float) -> bool:
        health = self._health.get(provider)
        return health is not None and health.rests_until > now
