"""The guard in front of every route: decides which requests reach the app at all.

In this order: the request's route is found in the table of routes; Host and port must be those on which Legion listens
(421, stops DNS rebinding; a route whose requests are signed has any), an Origin must be the page's own (403), the token
or a browser's secret must be right (401, but for routes that need no login), the identity that it proves must be
among those that the route is open to (403; an agent's attempt is recorded), the body must not be too big (413) or too
slow (408), nor all bodies together too much (429, 503). Pure ASGI, so that the framework sees no request that is not
allowed. The guard adds the caller and the route to the request's scope.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable
from typing import NoReturn

from fastapi.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from legion import __version__
from legion.api import devices
from legion.api.bodies import BodyLimits, IncomingBody
from legion.api.problems import GuardRefusal, problem_body
from legion.api.routes import CALLER, MOST_BYTES_WITHOUT_LOGIN, GuardedRoute, RouteTable
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import PERSON, Caller
from legion.wire.errors import NotAllowed
from legion.wire.table import OpenTo

SESSION = b"legion-session"
"""The header with the caller's id as the client knows it. It proves nothing; it must not contradict the token."""

_HEADERS_OF_EVERY_ANSWER = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"legion-version", __version__.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]
_FOREIGN = (b"cross-site", b"same-site")


def _foreign_page() -> GuardRefusal:
    return GuardRefusal(403, NotAllowed("Pages of other sites may not talk to Legion; open Legion's own address."))


class Guard:
    """`hosts` are the names, without port, under which the daemon answers over TCP; `behind` is that of a proxy.

    Without a token, browsers alone are let in.
    """

    def __init__(
        self,
        app: ASGIApp,
        table: RouteTable,
        callers: CallerRegistry,
        *,
        token: str | None,
        hosts: Collection[str],
        behind: str = "",
    ) -> None:
        self.app = app
        self.table = table
        self.callers = callers
        self.token = token.encode() if token is not None else None
        self.hosts = frozenset(host.lower() for host in hosts)
        self.behind = behind.lower()
        self.limits = BodyLimits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._socket(scope, receive, send)
            return
        send = _with_headers(send, devices.old_cookies(scope["headers"]))
        body = IncomingBody(self.limits, scope, receive)
        try:
            receive = await self._let_in(scope, receive, body)
        except GuardRefusal as refusal:
            await _refuse(send, refusal)
        else:
            await self.app(scope, receive, send)
        finally:
            body.release()

    async def _let_in(self, scope: Scope, receive: Receive, body: IncomingBody) -> Receive:
        """The body is read here, so that its size is checked before the app parses it."""
        route = self.table.find(scope)
        self._check_origin(scope, route)
        is_open = route is not None and OpenTo.NO_LOGIN in route.open_to
        if not is_open:
            scope[CALLER] = await self._caller(scope, route)
        if scope["method"] in ("GET", "HEAD"):
            return receive
        most = MOST_BYTES_WITHOUT_LOGIN if route is None else route.most_body
        caller = _asked(scope) if is_open else scope[CALLER].id
        read = await body.read(caller, most=most, is_known=not is_open)
        return receive if read is None else _replay(read, receive)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket: its browser names the page as its origin, and the page sends its secret as a subprotocol."""
        try:
            route = self.table.find(scope)
            self._check_origin(scope, route)
            if route is None:
                raise GuardRefusal(404, NotAllowed("There is no such WebSocket."))
            scope[CALLER] = await self._caller(scope, route)
        except GuardRefusal:
            await send({"type": "websocket.close", "code": 1008})
            return

        async def sending(message: Message) -> None:
            if message["type"] == "websocket.accept" and devices.PROTOCOL in scope.get("subprotocols", ()):
                message["subprotocol"] = devices.PROTOCOL
            await send(message)

        await self.app(scope, receive, sending)

    def _check_origin(self, scope: Scope, route: GuardedRoute | None) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        host = self._host(scope, route, [value for name, value in headers if name == b"host"])
        for name, value in headers:
            if name == b"origin" and value.lower() not in (b"http://" + host, b"https://" + host):
                raise _foreign_page()

    def _host(self, scope: Scope, route: GuardedRoute | None, values: list[bytes]) -> bytes:
        """Any name is accepted over the unix socket, which no browser can reach."""
        host = values[0].lower() if len(values) == 1 else b""
        if (route is not None and route.any_host) or _is_unix_socket(scope) or self._is_ours(scope, host):
            return host
        raise GuardRefusal(
            421, NotAllowed("Legion does not answer under this host name and port; use an address of `legion web`.")
        )

    def _is_ours(self, scope: Scope, host: bytes) -> bool:
        text = host.decode("latin-1")
        if self.behind:
            return text == self.behind
        name, port = _parts(text, "443" if scope.get("scheme") in ("https", "wss") else "80")
        return name in self.hosts and port == str((scope.get("server") or ("", ""))[1])

    async def _caller(self, scope: Scope, route: GuardedRoute | None) -> Caller:
        """The caller, by the token or the secret alone. Who has no route is identified all the same: that is a 401."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if any(name == b"sec-fetch-site" and value in _FOREIGN for name, value in headers):
            raise _foreign_page()
        values = [value for name, value in headers if name == b"authorization"]
        if not values and (secret := devices.secret_in(scope)):
            return await self._device(scope, secret, route)
        scheme, _, given = (values[0] if len(values) == 1 else b"").partition(b" ")
        given = given.strip() if scheme.lower() == b"bearer" else b""
        caller = await self._bearer(given)
        claimed = [value.decode("latin-1").strip() for name, value in headers if name == SESSION]
        asked = _asked(scope)
        if any(name != caller.id for name in claimed):
            why = f"This token belongs to {caller.id} and cannot be used as {claimed[0][:80]!r}; fix LEGION_SESSION_ID."
            await self._forbid(caller, asked, why)
        if route is None or caller is PERSON:
            return caller
        if caller.only_tools and OpenTo.PLUGIN not in route.open_to:
            raise GuardRefusal(403, NotAllowed("This token opens Legion's tools only; use the person's own."))
        if not caller.is_person and (OpenTo.AGENTS if caller.ticket is None else OpenTo.TICKET) not in route.open_to:
            why = f"{asked} is not open to agents; ask a person with legion-ask if you need it."
            await self._forbid(caller, asked, why)
        return caller

    async def _bearer(self, given: bytes) -> Caller:
        if self.token is not None and hmac.compare_digest(given, self.token):
            return PERSON
        try:
            if self.token is None:
                raise NotAllowed("This address is open to browsers only; run `legion web` and open its link.")
            return await run_in_threadpool(self.callers.known, given.decode("latin-1"))
        except NotAllowed as unknown:
            raise GuardRefusal(401, unknown, [(b"www-authenticate", b"Bearer")]) from None

    async def _device(self, scope: Scope, secret: str, route: GuardedRoute | None) -> Caller:
        """The person, at a browser that was let in."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        mark = b"origin" if scope["type"] == "websocket" else devices.SECRET_HEADER
        if not devices.sent_by_the_page(headers, mark=mark):
            raise GuardRefusal(403, NotAllowed("Only Legion's own page may use this browser's secret."))
        try:
            device = await run_in_threadpool(self.callers.device, secret, host=devices.host_of(headers))
        except NotAllowed as unknown:
            raise GuardRefusal(401, unknown) from None
        identity = devices.identity_of(device, scope)
        if route is not None and identity not in route.open_to:
            raise GuardRefusal(403, NotAllowed(devices.refusal(identity, route.open_to, _asked(scope))))
        scope[devices.DEVICE] = device
        return PERSON

    async def _forbid(self, caller: Caller, asked: str, why: str) -> NoReturn:
        await run_in_threadpool(self.callers.refused, caller, asked, why)
        raise GuardRefusal(403, NotAllowed(why))


def _asked(scope: Scope) -> str:
    return f"{scope.get('method', 'GET')} {scope['path']}"[:200]


def _is_unix_socket(scope: Scope) -> bool:
    server = scope.get("server")
    return server is not None and server[1] is None


def _parts(host: str, usual_port: str) -> tuple[str, str]:
    """Name and port of a Host header."""
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        return name, rest.removeprefix(":") or usual_port
    name, _, port = host.partition(":")
    return name, port or usual_port


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed


def _with_headers(send: Send, more: Iterable[tuple[bytes, bytes]]) -> Send:
    added = list(more)

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            named = {name for name, _ in headers}
            message["headers"] = headers + [one for one in _HEADERS_OF_EVERY_ANSWER if one[0] not in named] + added
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
