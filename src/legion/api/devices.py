"""Browsers at the guard: the secret of a device, the signs of a request of the page, the rights of a device.

The page keeps its secret where each origin has a place of its own, and sends it as a header; a WebSocket sends it as
its second subprotocol. A browser sends neither by itself. Cookies are not used: it sends them to every port of a host,
so to every server that an agent starts there.

A browser on this machine, or behind TLS, may do what the person may. One that reaches Legion over a plain network
cannot add others and cannot change what runs as the person: its secret can be read in that network.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from legion.domain.devices import Device, DeviceRights, is_loopback, rights_of
from legion.domain.questions import ALWAYS
from legion.service.entry.callers import CallerRegistry
from legion.wire.errors import NotAllowed
from legion.wire.table import OpenTo, Operation

DEVICE = "legion.device"
"""The key in a request's scope where the guard stores the Device."""
SECRET_HEADER = b"legion-device"
PAGE_HEADER = b"legion-page"
"""The page sends it with its login. A page of another site cannot, without a permission that is never given."""
PROTOCOL = "legion"
"""The first subprotocol of the page's WebSockets, and the one that the daemon chooses."""

_ONLY_LOOKS = "This device may only look; run `legion web` without --read-only to let it act."
_ENCRYPT = "This is not possible over an unencrypted network; do it on Legion's machine, or use `legion web --tls`."
_OLD_COOKIE = re.compile(r"\s*(legion(?:-\d{1,5})?)=")

Headers = Collection[tuple[bytes, bytes]]


def host_of(headers: Headers) -> str:
    return next((value.decode("latin-1").lower() for name, value in headers if name == b"host"), "")


def secret_in(scope: Mapping[str, Any]) -> str:
    """The secret that the page has sent; empty where there is none."""
    if scope["type"] == "websocket":
        given = list(scope.get("subprotocols", ()))
        return given[1] if len(given) == 2 and given[0] == PROTOCOL else ""
    found = [value.decode("latin-1") for name, value in scope["headers"] if name == SECRET_HEADER]
    return found[0] if len(found) == 1 else ""


def sent_by_the_page(headers: Headers, *, mark: bytes = PAGE_HEADER) -> bool:
    """Whether the request can come from Legion's own page only. The guard has compared Origin already.

    A page can add no header to a WebSocket, but its browser always sends Origin there: then that is the mark.
    """
    given = dict(headers)
    return mark in given and given.get(b"sec-fetch-site", b"same-origin") == b"same-origin"


def old_cookies(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    """What deletes the cookies of releases that logged in with them."""
    for name, value in headers:
        if name == b"cookie":
            for one in value.decode("latin-1").split(";"):
                if found := _OLD_COOKIE.match(one):
                    yield b"set-cookie", f"{found[1]}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict".encode()


def identity_of(device: Device, scope: Mapping[str, Any]) -> OpenTo:
    """All of it must be among those that a route is open to."""
    encrypted = scope.get("scheme") in ("https", "wss")
    rights = rights_of(device, encrypted=encrypted)
    if rights is DeviceRights.READ_ONLY:
        return OpenTo.READ_ONLY if encrypted or is_loopback(device.host) else OpenTo.READ_ONLY | OpenTo.LIMITED
    return OpenTo.LIMITED if rights is DeviceRights.LIMITED else OpenTo.BROWSER


def refusal(identity: OpenTo, open_to: OpenTo, asked: str) -> str:
    """Why a browser may not call a route that is not open to it."""
    if OpenTo.BROWSER not in open_to:
        return f"{asked[:80]} is open to the command line only."
    return _ONLY_LOOKS if OpenTo.READ_ONLY in identity and OpenTo.READ_ONLY not in open_to else _ENCRYPT


def refuse_over_plain_network(scope: Mapping[str, Any], row: Operation, arguments: Mapping[str, Any]) -> None:
    """Raises NotAllowed where a browser over a plain network sets more than the row's `plain` fields."""
    device: Device | None = scope.get(DEVICE)
    if row.body is None or device is None or OpenTo.LIMITED not in identity_of(device, scope):
        return
    chosen = set(_chosen(arguments[row.body.name]))
    if more := sorted({name for name, _ in chosen} - row.plain):
        raise NotAllowed(f"`{more[0]}` cannot be chosen over an unencrypted network; leave it out, or use --tls.")
    if row.name == "answer" and ("choice", ALWAYS) in chosen:
        raise NotAllowed(f"`{ALWAYS}` changes what agents may do. {_ENCRYPT}")


def _chosen(body: object) -> Iterator[tuple[str, str]]:
    """The fields, at any depth, that differ from what they are when they are left out."""
    if isinstance(body, list | tuple):
        for one in body:
            yield from _chosen(one)
    elif dataclasses.is_dataclass(body):
        for one in dataclasses.fields(body):
            value = getattr(body, one.name)
            usual = one.default_factory() if one.default_factory is not dataclasses.MISSING else one.default
            if value != usual:
                yield one.name, str(value)
                yield from _chosen(value)


def terminal_fault(scope: Mapping[str, Any], *, only_looks: bool) -> str:
    """Why the caller may not open a terminal on the page; empty where it may. What is typed runs as the person."""
    device: Device | None = scope.get(DEVICE)
    if only_looks or device is None:
        return ""
    identity = identity_of(device, scope)
    return "" if identity is OpenTo.BROWSER else refusal(identity, OpenTo.BROWSER, "a terminal")


def is_still_in(callers: CallerRegistry, scope: Mapping[str, Any]) -> bool:
    """Whether the caller of an open request may go on reading. Only a device can be shut out meanwhile."""
    if DEVICE not in scope:
        return True
    try:
        callers.device(secret_in(scope), host=host_of(scope["headers"]))
    except NotAllowed:
        return False
    return True
