"""The routes of a listener and who may call each. The route of a request is found here, and its rights with it.

A path has one spelling: a number without sign, point or leading zeros, no empty segment, no escape of a character that
needs none. Every other spelling is the path of no route.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute

from legion.wire.table import OpenTo

CALLER = "legion.caller"
"""The key in a request's scope where the guard stores the Caller."""
ENTRY = "legion.route"
"""The key in a request's scope where the guard stores its GuardedRoute."""
MOST_BODY_BYTES = 32 * 1024 * 1024
MOST_BYTES_WITHOUT_LOGIN = 16 * 1024
"""Of a body that arrives without login."""

_NEEDLESS_ESCAPE = re.compile(rb"%(2[def]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])", re.IGNORECASE)
"""Of a letter, a digit, or one of `-./_~`."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class _NumberConvertor(Convertor[int]):
    regex = "[1-9][0-9]{0,17}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


class _NameConvertor(Convertor[str]):
    regex = r"\w(?:[\w .@:-]{0,78}[\w.@:-])?"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("positive", _NumberConvertor())
register_url_convertor("name", _NameConvertor())


@dataclass(frozen=True, kw_only=True)
class GuardedRoute:
    """A route with its rights. No other kind is served."""

    route: BaseRoute
    open_to: OpenTo
    most_body: int = MOST_BODY_BYTES
    any_host: bool = False
    """It is signed, so it may come through a tunnel of any name."""

    @property
    def path(self) -> str:
        assert isinstance(self.route, Route | WebSocketRoute)
        return self.route.path

    @property
    def methods(self) -> frozenset[str]:
        """Empty for a WebSocket."""
        return frozenset(getattr(self.route, "methods", None) or ())


class RouteTable:
    """Raises TypeError for a route that does not say who may call it."""

    def __init__(self, routes: Iterable[object]) -> None:
        found: list[GuardedRoute] = []
        for one in routes:
            if not isinstance(one, GuardedRoute):
                raise TypeError(f"{one} does not say who may call it")
            found.append(one)
        self.entries = tuple(found)
        self._by_start: dict[str, list[GuardedRoute]] = {}
        for entry in self.entries:
            self._by_start.setdefault(_start(entry.path.partition("{")[0]), []).append(entry)

    def find(self, scope: MutableMapping[str, Any]) -> GuardedRoute | None:
        """The route of a request, and its parameters in the scope; None where there is none for its method."""
        if not _is_canonical(scope):
            return None
        path: str = scope["path"]
        other_method = None
        for start in dict.fromkeys((_start(path), _start(path, 1))):
            for entry in self._by_start.get(start, ()):
                match, found = entry.route.matches(scope)
                if match is Match.FULL:
                    scope.update(found, route=entry.route)
                    scope[ENTRY] = entry
                    return entry
                if match is Match.PARTIAL and other_method is None:
                    other_method = entry
        # The route itself answers that it has another method.
        scope[ENTRY] = other_method
        return None


def _start(path: str, segments: int = 2) -> str:
    """The first segments: enough to leave all but a few routes out."""
    return "/".join(path.rstrip("/").split("/", segments + 1)[: segments + 1])


def _is_canonical(scope: Mapping[str, Any]) -> bool:
    raw: bytes = scope.get("raw_path") or b""
    return _NEEDLESS_ESCAPE.search(raw) is None and _CONTROL.search(scope["path"]) is None
