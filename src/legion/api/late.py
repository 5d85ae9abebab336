"""Routes that are made when they are first asked for.

To make one, its body and its answer are compiled; with all of them a daemon's start would take a quarter longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import ConfigDict
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from legion.wire.projects import Problem


class LateRouter(APIRouter):
    """Routes of one kind, written down as in any router."""

    def __init__(self, *, prefix: str, tag: str) -> None:
        super().__init__(prefix=prefix)
        self._tag = tag

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **words: Any) -> None:  # noqa: ANN401 - FastAPI's
        self.routes.append(LateRoute(self.prefix + path, endpoint, {**words, "tags": [self._tag]}))


class LateRoute(Route):
    """Knows its path and its methods; the rest is made when somebody takes it."""

    def __init__(self, path: str, endpoint: Callable[..., Any], words: Mapping[str, Any]) -> None:
        super().__init__(path, endpoint)
        # Not HEAD, which Starlette would add: the route that is made does not take it either.
        self.methods = set(words["methods"])
        self._words = words
        self._made: APIRoute | None = None

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.made().handle(scope, receive, send)

    def made(self) -> APIRoute:
        if self._made is None:
            maker = APIRouter(
                # Says in the OpenAPI document what the guard asks for.
                dependencies=[Depends(HTTPBearer(auto_error=False))],
                responses={"default": {"model": Problem, "description": "What went wrong, in one sentence"}},
            )
            for name, kind in get_type_hints(self.endpoint).items():
                if name != "return":
                    _refuse_unknown_fields(kind)
            maker.add_api_route(self.path, self.endpoint, **self._words)
            (made,) = maker.routes
            assert isinstance(made, APIRoute)
            self._made = made
        return self._made


def _refuse_unknown_fields(kind: object) -> None:
    """In a body and everything in it: what a newer client asks for must not be dropped in silence."""
    for part in get_args(kind):
        _refuse_unknown_fields(part)
    if is_dataclass(kind) and "__pydantic_config__" not in vars(kind):
        setattr(kind, "__pydantic_config__", ConfigDict(extra="forbid"))  # noqa: B010 - no field of its own
        for field in get_type_hints(kind).values():
            _refuse_unknown_fields(field)


class LateApp(FastAPI):
    """An app that takes late routes, and makes all of them for whoever asks what there is."""

    def take(self, router: LateRouter) -> None:
        self.router.routes.extend(router.routes)

    def openapi(self) -> dict[str, Any]:
        self.router.routes[:] = [each.made() if isinstance(each, LateRoute) else each for each in self.router.routes]
        return super().openapi()
