"""Serves the page of `legion web`: its files, the login with a one-time code, and what the page knows about itself.

The files hold nothing of anyone's and need no login; all data is behind the guard.
"""

from __future__ import annotations

import asyncio
import functools
import gzip
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path, PurePosixPath

from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from legion import __version__, web
from legion.api import devices, problems
from legion.api.events import batches
from legion.api.json_response import JSONResponse
from legion.api.quota import Quota, QuotaFull, Waiters
from legion.api.routes import (
    BIGGEST,
    CALLER,
    MOST_BYTES_WITHOUT_LOGIN,
    GuardedRoute,
    refuse_unknown_fields,
    refuse_unstorable,
)
from legion.domain.devices import Device, PushSubscription, rights_of
from legion.domain.text import PAGE_PATTERN, to_json
from legion.service.entry.callers import CallerRegistry
from legion.web import first_view
from legion.wire.dispatch import TICKET_FIELDS
from legion.wire.errors import BadInput, LegionError, NotAllowed, NotFound
from legion.wire.history import FollowOutput, LiveOutput
from legion.wire.operations import OPERATIONS
from legion.wire.table import LONGEST_WAIT, OpenTo
from legion.wire.tickets import EventLine
from legion.wire.web import WebLogin, WebSession

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
_SMALLEST_TO_PACK = 500
_FILLED_IN = {b"%VERSION%": __version__, b"%HIDDEN%": PAGE_PATTERN}
"""Marks in the files of the page, and what is served in their place."""


@dataclass(frozen=True, kw_only=True)
class PageFile:
    content: bytes
    packed: bytes
    """Compressed; empty where that saves nothing."""
    kind: str
    etag: str


class PageFiles:
    """The files of the page: a table of those that exist, made once. A request is looked up in it by its exact name."""

    def __init__(self, root: Path = web.STATIC) -> None:
        self._root = root
        self._paths = {str(path.relative_to(root)): path for path in _plain_files(root) if path.suffix in _TYPES}
        self._known: dict[str, PageFile] = {}
        self.names = frozenset(self._paths) | ({first_view.JOINED} if first_view.ENTRY in self._paths else set())

    def known(self, name: str) -> PageFile | None:
        """The file if it was read before."""
        return self._known.get(name)

    def get(self, name: str) -> PageFile | None:
        """Read it at its first use; None for every name that is not in the table."""
        if name in self.names and name not in self._known:
            self._known[name] = self._read(name)
        return self._known.get(name)

    @functools.cached_property
    def _first(self) -> first_view.FirstView:
        return first_view.FirstView(self._root)

    def _read(self, name: str) -> PageFile:
        is_joined = name == first_view.JOINED or name in self._first.names
        content = self._first.file(name).encode() if is_joined else self._paths[name].read_bytes()
        for mark, text in _FILLED_IN.items():
            content = content.replace(mark, text.encode())
        packed = gzip.compress(content, 9, mtime=0) if len(content) >= _SMALLEST_TO_PACK else b""
        etag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
        return PageFile(content=content, packed=packed, kind=_TYPES[PurePosixPath(name).suffix], etag=etag)


def _plain_files(root: Path) -> Iterator[Path]:
    """Without links, and without what is behind one."""
    for folder, _, names in os.walk(root):
        yield from (path for name in names if (path := Path(folder, name)).is_file() and not path.is_symlink())


async def _file(request: Request, name: str) -> Response:
    files: PageFiles = request.app.state.page
    file = files.known(name) or await run_in_threadpool(files.get, name)
    if file is None:
        return problems.answer(NotFound(f"There is no {name[:80]} in the page."))
    headers = {**_HEADERS, "etag": file.etag, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    if file.packed and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, media_type=file.kind, headers={**headers, "content-encoding": "gzip"})
    return Response(file.content, media_type=file.kind, headers=headers)


async def _index(request: Request) -> Response:
    return await _file(request, "index.html")


async def _worker(request: Request) -> Response:
    return await _file(request, "sw.js")


async def _icon(request: Request) -> Response:
    return await _file(request, "icons/legion.svg")


async def _asset(request: Request) -> Response:
    return await _file(request, request.path_params["name"])


async def _authority(request: Request) -> Response:
    """The certificate that a phone installs for `legion web --tls`. It is public; its key stays on this machine."""
    callers: CallerRegistry = request.app.state.callers
    try:
        content = await run_in_threadpool(callers.authority_file.read_bytes)
    except FileNotFoundError:
        return problems.answer(NotFound("There is no certificate: run `legion web --tls` first."))
    return Response(content, media_type="application/x-x509-ca-cert", headers=_HEADERS)


_LOGIN = TypeAdapter(WebLogin)


async def _login(request: Request) -> Response:
    """The secret is in the answer alone: the page keeps it where each origin has a place of its own."""
    headers = request.scope["headers"]
    try:
        if not devices.sent_by_the_page(headers):
            raise NotAllowed("Only Legion's own page may log in here.")
        wanted = _LOGIN.validate_json(await request.body())
        callers: CallerRegistry = request.app.state.callers
        host = devices.host_of(headers)
        secret, device = await run_in_threadpool(callers.accept_device, wanted.code, name=wanted.name, host=host)
    except ValidationError:
        return problems.answer(BadInput("Send the code of the link as {code: ...}."))
    except LegionError as refusal:
        return problems.answer(refusal)
    return _session_answer(request, device, secret)


async def _session(request: Request) -> Response:
    """Which device this browser is."""
    device: Device | None = request.scope.get(devices.DEVICE)
    if device is None:
        return problems.answer(NotFound("This is the session of a browser; the person's token has none."))
    return _session_answer(request, device)


_SUBSCRIPTION: TypeAdapter[PushSubscription | None] = TypeAdapter(PushSubscription | None)


async def _push(request: Request) -> Response:
    """GET: the key that a browser subscribes with. POST: its subscription, or null to end it."""
    callers: CallerRegistry = request.app.state.callers
    try:
        device: Device | None = request.scope.get(devices.DEVICE)
        if device is None:
            raise NotFound("Only a browser gets notifications of a page.")
        if request.method == "GET":
            return JSONResponse({"key": await run_in_threadpool(callers.push_key)})
        wanted = _SUBSCRIPTION.validate_json(await request.body())
        await run_in_threadpool(callers.subscribe_push, device, wanted)
        return JSONResponse({"message": "This browser gets notifications." if wanted else "Notifications are off."})
    except ValidationError:
        return problems.answer(BadInput("Send a subscription as {endpoint, p256dh, auth}, or null."))
    except LegionError as refusal:
        return problems.answer(refusal)


def _session_answer(request: Request, device: Device, secret: str = "") -> Response:
    rights = rights_of(device, encrypted=request.url.scheme == "https")
    session = WebSession(
        version=__version__,
        device=device.id,
        name=device.name,
        read_only=device.read_only,
        rights=rights.value,
        secret=secret,
    )
    return JSONResponse(vars(session))


async def _fields(_: Request) -> Response:
    """The fields of a new ticket, as `legion dispatch` has them: the page makes its form of them."""
    return JSONResponse(
        {
            "fields": [
                {"name": name, "kind": field.kind.value, "help": field.rule.help, "choices": field.rule.choices}
                for name, field in TICKET_FIELDS.items()
                if field.options or name == "text"
            ]
        }
    )


def _open(
    path: str, endpoint: Callable[[Request], Awaitable[Response]], open_to: OpenTo, *methods: str
) -> GuardedRoute:
    return GuardedRoute(
        route=Route(path, endpoint, methods=methods or ("GET",)), open_to=open_to, most_body=MOST_BYTES_WITHOUT_LOGIN
    )


ROUTES = (
    _open("/", _index, OpenTo.NO_LOGIN),
    _open("/sw.js", _worker, OpenTo.NO_LOGIN),
    _open("/favicon.ico", _icon, OpenTo.NO_LOGIN),
    _open("/web/login", _login, OpenTo.NO_LOGIN, "POST"),
    _open("/web/session", _session, OpenTo.LOOKS),
    _open("/web/authority.pem", _authority, OpenTo.NO_LOGIN),
    _open("/web/push", _push, OpenTo.READ_ONLY | OpenTo.BROWSER, "GET", "POST"),
    _open("/web/fields", _fields, OpenTo.LOOKS),
    _open("/web/{name:path}", _asset, OpenTo.NO_LOGIN),
)


# The WebSockets of the page: one sends events, one answers requests for output.
#
# A browser has six connections to an address for all its windows, and counts no WebSocket among them. So what waits for
# something to happen waits in a WebSocket, and any number of windows can be open.

EVENTS, OUTPUT = "/ws/events", "/ws/output"
_SOCKET_POLICY, _TRY_LATER = 1008, 1013
_OUTPUT = OPERATIONS["output"]


async def events(socket: WebSocket) -> None:
    """Send a list of events at once, after every change, and an empty one as a sign of life."""
    given = socket.query_params.get("after", "0")
    if not given.isdecimal() or len(given) > len(str(BIGGEST)) or int(given) > BIGGEST:
        await socket.close(_SOCKET_POLICY)
        return
    async with _counted(socket) as may_open:
        if not may_open:
            await socket.close(_TRY_LATER)
            return
        await socket.accept()
        await socket.send_text("[]")
        await _send_until_closed(socket, _batches(socket, int(given)))


def _batches(socket: WebSocket, after: int) -> AsyncIterator[list[EventLine]]:
    state = socket.app.state
    callers: CallerRegistry = state.callers
    return batches(
        callers.acting(socket.scope[CALLER]),
        partial(state.stream_waiters.run, socket.scope[CALLER].id),
        after,
        heartbeat=state.heartbeat,
        may_read=partial(devices.is_still_in, callers, socket.scope),
    )


async def _send_until_closed(socket: WebSocket, parts: AsyncIterator[list[EventLine]]) -> None:
    leaving = asyncio.ensure_future(_until_closed(socket))
    try:
        while True:
            part = asyncio.ensure_future(anext(parts, None))
            await asyncio.wait([leaving, part], return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                part.cancel()
                return
            if (found := part.result()) is None:
                await socket.close(_SOCKET_POLICY)
                return
            await socket.send_text(to_json([vars(event) for event in found]))
    finally:
        leaving.cancel()


async def _until_closed(socket: WebSocket) -> None:
    """Whatever the client sends is left unread."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


@asynccontextmanager
async def _counted(socket: WebSocket) -> AsyncIterator[bool]:
    """Count the stream of the caller while the block runs; False: the caller has as many as it may."""
    streams: Quota = socket.app.state.streams
    caller, may_open = socket.scope[CALLER].id, False
    try:
        with suppress(QuotaFull):
            streams.take(caller)
            may_open = True
        yield may_open
    except (WebSocketDisconnect, RuntimeError):
        # The browser left in the middle of a message.
        pass
    finally:
        if may_open:
            streams.give_back(caller)


async def output(socket: WebSocket) -> None:
    """Answer each FollowOutput with a LiveOutput, when something was printed or the time is up."""
    callers: CallerRegistry = socket.app.state.callers
    waiters: Waiters = socket.app.state.waiters
    caller = socket.scope[CALLER]
    still_in = partial(devices.is_still_in, callers, socket.scope)
    try:
        await socket.accept()
        while True:
            wanted = _shape().validate_json(await socket.receive_text())
            refuse_unstorable(_OUTPUT, {"wanted": wanted})
            given = {"wanted": wanted, "timeout": LONGEST_WAIT}
            found: LiveOutput = await waiters.run(caller.id, partial(callers.perform, caller, _OUTPUT, given))
            if not await run_in_threadpool(still_in):
                break
            await socket.send_text(to_json(asdict(found)))
        await socket.close(_SOCKET_POLICY)
    except (ValidationError, LegionError):
        await socket.close(_SOCKET_POLICY)
    except (WebSocketDisconnect, RuntimeError):
        # The browser left in the middle of a message.
        pass


@cache
def _shape() -> TypeAdapter[FollowOutput]:
    refuse_unknown_fields(FollowOutput)
    return TypeAdapter(FollowOutput)


SOCKET_ROUTES = (
    GuardedRoute(route=WebSocketRoute(EVENTS, events), open_to=OpenTo.LOOKS),
    GuardedRoute(route=WebSocketRoute(OUTPUT, output), open_to=OpenTo.LOOKS),
)
