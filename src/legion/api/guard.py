"""The guard in front of every route: decides which requests reach the app at all.

In this order: the Host must be one of ours (421, stops DNS rebinding; a webhook may come through a tunnel of any name,
since its signature proves more), an Origin must be the page's own (403), the bearer token must be right (401, all
routes but /health and the webhook), an agent must call under its own name and only what is open to agents (403,
written down), the body must not be too big (413).
Pure ASGI, so that the framework sees no request that is not allowed. The guard adds the caller to the request's scope.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from typing import Any, NoReturn

from fastapi.concurrency import run_in_threadpool

from legion import __version__
from legion.api import devices, forge_hook, page
from legion.api.allowed import CALLER, may_call
from legion.api.problems import problem_body
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import PERSON, Caller
from legion.wire.errors import BadInput, LegionError, NotAllowed

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BODY_BYTES = 32 * 1024 * 1024
OPEN_PATHS = frozenset({"/health", forge_hook.PATH, *page.OPEN_PATHS})
_TOOLS_PATH = "/mcp"
"""All that the token of the plugin opens."""
SESSION = b"legion-session"
"""The header with the caller's id as the client knows it. It proves nothing; it must not contradict the token."""

_HEADERS_OF_EVERY_ANSWER = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"legion-version", __version__.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]


class GuardRefusal(Exception):
    """The guard answers instead of the route."""

    def __init__(self, status: int, error: LegionError, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = headers


_FOREIGN = (b"cross-site", b"same-site")


def _foreign_page() -> GuardRefusal:
    return GuardRefusal(403, NotAllowed("Pages of other sites may not talk to Legion; open Legion's own address."))


class Guard:
    """`hosts` are the names, without port, under which the daemon answers over TCP."""

    def __init__(
        self,
        app: App,
        callers: CallerRegistry,
        *,
        token: str,
        hosts: Collection[str],
        most_body_bytes: int = MOST_BODY_BYTES,
    ) -> None:
        self.app = app
        self.callers = callers
        self.token = token.encode()
        self.hosts = frozenset(host.lower() for host in hosts)
        self.most_body_bytes = most_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._socket(scope, receive, send)
            return
        send = _with_headers(send)
        try:
            self._check_origin(scope)
            if scope["path"] not in OPEN_PATHS and not scope["path"].startswith(page.FOLDER):
                scope[CALLER] = await self._caller(scope)
            receive = await self._read_body(scope, receive)
        except GuardRefusal as refusal:
            await _refuse(send, refusal)
            return
        await self.app(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket: a browser sends its cookie from any page, so it must name the page as its origin."""
        try:
            self._check_origin(scope)
            scope = {**scope, "method": "GET"}
            scope[CALLER] = await self._caller(scope)
        except GuardRefusal:
            await send({"type": "websocket.close", "code": 1008})
            return
        await self.app(scope, receive, send)

    def _check_origin(self, scope: Scope) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        host = self._host(scope, [value for name, value in headers if name == b"host"])
        for name, value in headers:
            if name == b"origin" and value.lower() not in (b"http://" + host, b"https://" + host):
                raise _foreign_page()

    def _host(self, scope: Scope, values: list[bytes]) -> bytes:
        """Any name is accepted over the unix socket, which no browser can reach, and for a webhook, which is signed."""
        host = values[0].lower() if len(values) == 1 else b""
        webhook = scope["path"] == forge_hook.PATH
        if webhook or _is_unix_socket(scope) or _without_port(host) in self.hosts:
            return host
        raise GuardRefusal(421, NotAllowed("Legion does not answer under this host name; use 127.0.0.1 or localhost."))

    async def _caller(self, scope: Scope) -> Caller:
        """The caller, by the token alone."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if any(name == b"sec-fetch-site" and value in _FOREIGN for name, value in headers):
            raise _foreign_page()
        values = [value for name, value in headers if name == b"authorization"]
        if not values and (secret := devices.secret_in(headers)):
            return await self._device(scope, secret)
        scheme, _, given = (values[0] if len(values) == 1 else b"").partition(b" ")
        given = given.strip() if scheme.lower() == b"bearer" else b""
        if hmac.compare_digest(given, self.token):
            caller = PERSON
        else:
            try:
                caller = await run_in_threadpool(self.callers.known, given.decode("latin-1"))
            except NotAllowed as unknown:
                raise GuardRefusal(401, unknown, [(b"www-authenticate", b"Bearer")]) from None
        claimed = [value.decode("latin-1").strip() for name, value in headers if name == SESSION]
        asked = f"{scope['method']} {scope['path']}"
        if any(name != caller.id for name in claimed):
            why = f"This token belongs to {caller.id} and cannot be used as {claimed[0][:80]!r}; fix LEGION_SESSION_ID."
            await self._forbid(caller, asked, why)
        if caller.only_tools and scope["path"] != _TOOLS_PATH:
            raise GuardRefusal(403, NotAllowed("This token opens Legion's tools only; use the person's own."))
        if not caller.is_person and not may_call(scope["method"], scope["path"], of_a_ticket=caller.ticket is not None):
            why = f"{asked[:200]} is not open to agents; ask a person with legion-ask if you need it."
            await self._forbid(caller, asked, why)
        return caller

    async def _device(self, scope: Scope, secret: str) -> Caller:
        """The person, at a browser that was let in. A browser sends its cookie for any page, so more is asked for."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if not devices.sent_by_the_page(headers, socket=scope["type"] == "websocket"):
            raise GuardRefusal(403, NotAllowed("Only Legion's own page may use this browser's cookie."))
        try:
            device = await run_in_threadpool(self.callers.device, secret, host=devices.host_of(headers))
        except NotAllowed as unknown:
            raise GuardRefusal(401, unknown, [devices.forget(headers)]) from None
        if why := devices.fault(device, scope["method"], scope["path"], scheme=scope.get("scheme", "http")):
            raise GuardRefusal(403, NotAllowed(why))
        scope[devices.DEVICE] = device
        return PERSON

    async def _forbid(self, caller: Caller, asked: str, why: str) -> NoReturn:
        await run_in_threadpool(self.callers.refused, caller, asked[:200], why)
        raise GuardRefusal(403, NotAllowed(why))

    async def _read_body(self, scope: Scope, receive: Receive) -> Receive:
        """Read the body here, so that its size is checked before the app parses it."""
        if scope["method"] in ("GET", "HEAD"):
            return receive
        body = bytearray()
        more = not self._declared_too_big(scope)
        too_big = not more
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return receive
            body += message.get("body", b"")
            too_big = len(body) > self.most_body_bytes
            more = message.get("more_body", False) and not too_big
        if too_big:
            most = self.most_body_bytes // (1024 * 1024)
            raise GuardRefusal(413, BadInput(f"The request is larger than {most} MB; send less at once."))
        return _replay(bytes(body), receive)

    def _declared_too_big(self, scope: Scope) -> bool:
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        return any(value.isdigit() and int(value) > self.most_body_bytes for value in lengths)


def _is_unix_socket(scope: Scope) -> bool:
    server = scope.get("server")
    return server is not None and server[1] is None


def _without_port(host: bytes) -> str:
    text = host.decode("latin-1")
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            named = {name for name, _ in headers}
            message["headers"] = headers + [one for one in _HEADERS_OF_EVERY_ANSWER if one[0] not in named]
        await send(message)

    return sending


async def _refuse(send: Send, refusal: GuardRefusal) -> None:
    body = problem_body(refusal.error)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
