"""Routes made from the table of operations, and the table of a listener's routes with who may call each.

A route is made when it is first requested, because pydantic compiles its shapes then: all of them together would take a
quarter of the daemon's start.

A path has one spelling: a number without sign, point or leading zeros, no empty segment, no escape of a character that
needs none. Every other spelling is the path of no route.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from typing import Annotated, Any, cast, get_args, get_type_hints

import orjson
from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import ConfigDict, Field
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from legion import wire
from legion.api import devices
from legion.api.quota import Waiters
from legion.domain.text import in_all, whole
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import Caller
from legion.wire.errors import BadInput
from legion.wire.operations import OFFERED
from legion.wire.projects import Problem
from legion.wire.table import LONGEST_WAIT, OpenTo, Operation

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


BIGGEST = 2**63 - 1
_OWN_IDS = ":/"
_LONGEST_PATH, _LONGEST_NAME = 4095, 255
Perform = Callable[[Request, Operation, Mapping[str, Any]], object]

FOLDER = Annotated[str, Field(min_length=1, description="any folder inside the project")]
_Id = Annotated[int, Field(ge=1, le=BIGGEST)]
_PARAMETERS = {
    "TicketId": _Id,
    "QuestionId": _Id,
    "RunId": _Id,
    "AgentName": Annotated[
        str, Field(min_length=1, max_length=80, description="an id, its first characters, or a name")
    ],
    "ToolName": Annotated[str, Field(max_length=80)],
    "MachineName": Annotated[str, Field(max_length=80)],
    "Folder": FOLDER,
    "Text": str,
    "Cursor": Annotated[str, Field(max_length=80)],
    "Number": Annotated[int, Field(ge=0, le=BIGGEST)],
    "Count": Annotated[int, Field(ge=0, le=100_000)],
    "Hours": Annotated[float, Field(gt=0, le=100_000)],
    "Seconds": Annotated[float, Field(ge=0, le=LONGEST_WAIT)],
    "TicketIds": Annotated[list[_Id] | None, Query()],
}
"""The limits of the parameter types of wire/table.py."""


def perform(request: Request, row: Operation, arguments: Mapping[str, Any]) -> object:
    callers: CallerRegistry = request.app.state.callers
    return callers.perform(caller_of(request), row, arguments)


def caller_of(request: Request) -> Caller:
    """As the guard found by the token."""
    return cast(Caller, request.scope[CALLER])


class LazyApp(FastAPI):
    """Serves the routes of its table, which the guard has found already. Makes all of them for the OpenAPI document."""

    def serve(self, table: RouteTable) -> None:
        self.table = table
        self.router.middleware_stack = _handle

    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            listed = [one.route.made() for one in self.table.entries if isinstance(one.route, LazyRoute)]
            self.openapi_schema = get_openapi(title=self.title, version=self.version, routes=listed)
        return self.openapi_schema


async def _handle(scope: Scope, receive: Receive, send: Send) -> None:
    entry: GuardedRoute | None = scope.get(ENTRY)
    if entry is None:
        raise HTTPException(404)
    await entry.route.handle(scope, receive, send)


class LazyRoute(Route):
    """Knows its path and its method; the rest is made at the first request."""

    def __init__(self, path: str, method: str, make: Callable[[], Callable[..., Any]], **options: Any) -> None:
        super().__init__(path, make)
        self.path = re.sub(r":\w+}", "}", path)
        # Without HEAD, which Starlette would add: the route that is made does not take it either.
        self.methods = {method}
        self._options = {**options, "methods": [method], "tags": [path.split("/")[-1 if path.count("/") == 1 else 2]]}
        self._made: APIRoute | None = None

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.made().handle(scope, receive, send)

    def made(self) -> APIRoute:
        if self._made is None:
            router = APIRouter(
                # Documents in OpenAPI what the guard asks for.
                dependencies=[Depends(HTTPBearer(auto_error=False))],
                responses={"default": {"model": Problem, "description": "What went wrong, in one sentence"}},
            )
            router.add_api_route(self.path, self.endpoint(), **self._options)
            (made,) = router.routes
            assert isinstance(made, APIRoute)
            self._made = made
        return self._made


@cache
def route_of(row: Operation, perform: Perform) -> GuardedRoute:
    """The same one for every app of a process: it holds nothing of an app, and its shapes are compiled once."""
    if bool(row.plain) is not (row.body is not None and OpenTo.LIMITED in row.open_to):
        raise TypeError(f"{row.name}: `plain` lists the body's fields for a browser over a plain network")
    options: dict[str, Any] = {"summary": row.summary, "status_code": 201 if row.created else 200}
    options["openapi_extra"] = {"x-offered": row.name in OFFERED, "x-on": row.on, "x-asks": row.asks}
    kinds = {one.name: "positive" if str(one.annotation).endswith("Id") else "name" for one in row.in_path}
    strict = row.path.format(**{name: f"{{{name}:{kind}}}" for name, kind in kinds.items()})
    route = LazyRoute(strict, row.method, partial(_endpoint, row, perform), **options)
    return GuardedRoute(route=route, open_to=row.open_to)


def _endpoint(row: Operation, perform: Perform) -> Callable[..., Any]:
    """A function with the row's signature, as FastAPI reads it."""

    def performed(request: Request, **arguments: Any) -> object:
        refuse_unstorable(row, arguments)
        devices.refuse_over_plain_network(request.scope, row, arguments)
        for one in row.parameters:
            if "Folder" in str(one.annotation):
                refuse_unusable(arguments[one.name], one.name)
        return sendable(perform(request, row, {one.name: arguments[one.name] for one in row.parameters}))

    async def waited(request: Request, **arguments: Any) -> object:
        waiters: Waiters = request.app.state.waiters
        return await waiters.run(caller_of(request).id, partial(performed, request, **arguments))

    endpoint: Any = waited if row.waits else performed
    hints = get_type_hints(row.declared, localns={**_PARAMETERS, "wire": wire}, include_extras=True)
    taken = [_parameter(one, hints[one.name]) for one in row.parameters]
    request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
    endpoint.__signature__ = inspect.Signature([request, *taken], return_annotation=hints["return"])
    endpoint.__name__ = row.name
    if row.body is not None:
        refuse_unknown_fields(hints[row.body.name])
    return cast(Callable[..., Any], endpoint)


def _parameter(one: inspect.Parameter, hint: Any) -> inspect.Parameter:  # noqa: ANN401 - a type
    may_be_left_out = one.default is one.empty and type(None) in get_args(hint)
    default = None if may_be_left_out else one.default
    return one.replace(kind=one.KEYWORD_ONLY, annotation=hint, default=default)


def refuse_unknown_fields(kind: object) -> None:
    """In a body and everything in it: a request of a newer client must not be answered in part."""
    for part in get_args(kind):
        refuse_unknown_fields(part)
    if is_dataclass(kind) and "__pydantic_config__" not in vars(kind):
        setattr(kind, "__pydantic_config__", ConfigDict(extra="forbid"))  # noqa: B010 - no field of its own
        for field in get_type_hints(kind).values():
            refuse_unknown_fields(field)


def sendable(answer: object) -> object:
    """The answer as JSON can hold it: the name of a file, or a transcript, may have letters that no encoding has."""
    try:
        orjson.dumps(answer, default=str)
    except orjson.JSONEncodeError:
        return in_all(answer, whole)
    return answer


def refuse_unstorable(row: Operation, arguments: Mapping[str, Any]) -> None:
    """Raises BadInput: no database stores NUL, lone surrogates or endless numbers."""
    for name, value in arguments.items():
        inside = row.body is not None and name == row.body.name
        _inspect(value, "" if inside else name)
        if inside and any(mark in getattr(value, "request", "") for mark in _OWN_IDS):
            raise BadInput("A request id has no ':' and no '/': ids with these are Legion's own. Send another one.")


def refuse_unusable(folder: str | None, name: str) -> None:
    """Raises BadInput for a path that no system can open, before anything tries."""
    if folder is None:
        return
    _inspect(folder, name)
    raw = folder.encode()
    if len(raw) > _LONGEST_PATH or any(len(part) > _LONGEST_NAME for part in raw.split(b"/")):
        raise BadInput(f"`{name}` is too long for a folder; send the path of one that exists.")


def _inspect(value: object, place: str) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise BadInput(f"`{place}` holds a NUL character; remove it.")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadInput(f"`{place}` is not valid Unicode; send UTF-8.") from None
    elif isinstance(value, int):
        if abs(value) > BIGGEST:
            raise BadInput(f"`{place}` is too large a number; stay within 64 bits.")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _inspect(item, f"{place}[{position}]")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _inspect(item, f"{place}.{key}")
    elif is_dataclass(value):
        for each in fields(value):
            _inspect(getattr(value, each.name), f"{place}.{each.name}" if place else each.name)
