"""Browsers at the guard: the cookie of a device, the signs of a request of the page, the rights of a device.

A browser on this machine, or behind TLS, may do what the person may. One that reaches Legion over a plain network
cannot add others and cannot change what runs as the person: its cookie can be read in that network.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from legion.api.allowed import pattern
from legion.domain.devices import Device, DeviceRights, rights_of
from legion.service.entry.callers import CallerRegistry
from legion.wire.errors import NotAllowed
from legion.wire.operations import OPERATIONS

DEVICE = "legion.device"
"""The key in a request's scope where the guard stores the Device."""
PAGE_HEADER = b"legion-page"
"""The page sends it with every request. A page of another site cannot, without a permission that is never given."""

_DAYS = 30
_ONLY_WITH_TOKEN = ("offer_device", "open_web", "close_web", "shutdown", "attach", "attach_agent", "shell")
"""Open to the command line alone."""
_NOT_OVER_A_PLAIN_NETWORK = (
    *("add_project", "remove_project", "trust", "save_role", "remove_role", "save_team", "remove_team"),
    *("add_provider", "remove_provider", "begin_login", "finish_login", "set_route", "remove_route"),
    *("add_forge", "remove_forge", "forge_hook"),
    *("switch_recording", "revoke_device", "add_driver", "new_by_hand", "push", "use_account"),
    *("invite_machine", "remove_machine", "update_machine"),
    *("export_conversation", "ask_conversation", "adopt", "handoff"),
)

_READS = ("output",)
"""Sent as POST because of what it asks with; it changes nothing."""

_ONLY_LOOKS = "This device may only look; run `legion web` without --read-only to let it act."
_ENCRYPT = "This is not possible over an unencrypted network; do it on Legion's machine, or use `legion web --tls`."

Headers = Collection[tuple[bytes, bytes]]


def host_of(headers: Headers) -> str:
    return next((value.decode("latin-1").lower() for name, value in headers if name == b"host"), "")


def secret_in(headers: Headers) -> str:
    """The secret in the cookie of this address; empty where there is none."""
    wanted = _cookie_name(headers)
    for name, value in headers:
        if name == b"cookie":
            try:
                found = SimpleCookie(value.decode("latin-1")).get(wanted)
            except CookieError:
                continue
            if found is not None:
                return found.value
    return ""


def sent_by_the_page(headers: Headers, *, socket: bool = False) -> bool:
    """Whether the request can come from Legion's own page only. The guard has compared Origin already.

    A page can add no header to a WebSocket, but its browser always sends Origin there.
    """
    given = dict(headers)
    return (b"origin" if socket else PAGE_HEADER) in given and given.get(
        b"sec-fetch-site", b"same-origin"
    ) == b"same-origin"


def remember(headers: Headers, secret: str, *, encrypted: bool) -> tuple[bytes, bytes]:
    """The header that stores the secret in the browser. No script can read it, and no other site can send it."""
    return _set_cookie(headers, secret, _DAYS * 86_400, "; Secure" if encrypted else "")


def forget(headers: Headers) -> tuple[bytes, bytes]:
    return _set_cookie(headers, "", 0, "")


def fault(device: Device, method: str, path: str, *, scheme: str) -> str:
    """Why the device may not call this; empty where it may."""
    rights = rights_of(device, encrypted=scheme in ("https", "wss"))
    asked = f"{method} {path}"
    if rights is DeviceRights.READ_ONLY and method != "GET" and not _READING.fullmatch(asked):
        return _ONLY_LOOKS
    if _WITH_TOKEN.fullmatch(asked):
        return f"{asked[:80]} is open to the command line only."
    if rights is DeviceRights.LIMITED and _NOT_PLAIN.fullmatch(asked):
        return _ENCRYPT
    return ""


def terminal_fault(scope: Mapping[str, Any], *, only_looks: bool) -> str:
    """Why the caller may not open a terminal on the page; empty where it may. What is typed runs as the person."""
    device: Device | None = scope.get(DEVICE)
    if only_looks or device is None:
        return ""
    rights = rights_of(device, encrypted=scope.get("scheme") in ("https", "wss"))
    return {DeviceRights.READ_ONLY: _ONLY_LOOKS, DeviceRights.LIMITED: _ENCRYPT}.get(rights, "")


def is_still_in(callers: CallerRegistry, scope: Mapping[str, Any]) -> bool:
    """Whether the caller of an open request may go on reading. Only a device can be shut out meanwhile."""
    if DEVICE not in scope:
        return True
    try:
        callers.device(secret_in(scope["headers"]), host=host_of(scope["headers"]))
    except NotAllowed:
        return False
    return True


def _set_cookie(headers: Headers, value: str, seconds: int, more: str) -> tuple[bytes, bytes]:
    text = f"{_cookie_name(headers)}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{more}"
    return b"set-cookie", text.encode()


def _cookie_name(headers: Headers) -> str:
    """With the port: cookies are shared between all ports of a host, and two daemons must not replace each other's."""
    _, _, port = host_of(headers).rpartition(":")
    return f"legion-{port}" if port.isdigit() else "legion"


def _requests(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"{OPERATIONS[name].method} {pattern(OPERATIONS[name])}" for name in names))


_READING = _requests(_READS)
_WITH_TOKEN = re.compile(f"{_requests(_ONLY_WITH_TOKEN).pattern}|POST /legion/config")
_NOT_PLAIN = _requests(_NOT_OVER_A_PLAIN_NETWORK)
