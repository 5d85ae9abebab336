"""Requests to a forge's HTTP API: tokens, pages, ETags, limits. Knows JSON and no endpoint.

A redirect is never followed: it would carry the token to an address that no person chose.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from legion import __version__
from legion.forge.errors import ForgeLimited, ForgeProblem, ForgeUnreachable
from legion.system import crash
from legion.system.crash import Point

_PATIENCE = 20.0
_SHORTEST_WAIT, _LONGEST_WAIT = 60.0, 3600.0
_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')
_MOST_PAGES = 50
_MOST_KNOWN = 500
_BIGGEST = 32 * 2**20


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: Any

    @property
    def message(self) -> str:
        """What the forge says about a refusal, on one line."""
        told = self.body if isinstance(self.body, dict) else {}
        parts = [str(told.get("message", ""))]
        parts += [str(one.get("message", "")) for one in told.get("errors") or () if isinstance(one, dict)]
        return " ".join(" ".join(part for part in parts if part).split())[:300]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class ForgeHttp:
    """One account at one forge. May be used from several threads."""

    def __init__(
        self,
        api: str,
        token: Callable[[], str],
        *,
        accept: str,
        pace: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`token` is called for each request. `pace`: seconds between two writes, as the forge asks for."""
        self.api = api.rstrip("/")
        self._token = token
        self._accept = accept
        self._pace = pace
        self._clock = clock
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._known: dict[str, tuple[str, HttpReply]] = {}
        """By URL: the ETag of the last answer, and the answer."""
        self._writing = threading.Lock()
        self._wrote_at = 0.0
        self._closed_until = 0.0
        self._refusals = 0

    def get(self, path: str, *, accept: tuple[int, ...] = (200,)) -> HttpReply:
        return self._checked("GET", path, None, accept)

    def all(
        self, path: str, check: Callable[[HttpReply], None], *, most: int = _MOST_PAGES, rows: str = ""
    ) -> list[Any]:
        """Every row of a list, page by page. `check` raises for an answer that is no list; `rows` names the list in an
        answer that is an object.
        """
        found: list[Any] = []
        at: str | None = path
        for _ in range(most):
            if at is None:
                break
            reply = self.get(at)
            check(reply)
            page = reply.body.get(rows) if rows and isinstance(reply.body, dict) else reply.body
            found += page if isinstance(page, list) else []
            link = _NEXT.search(reply.headers.get("link", ""))
            at = self._inside(link[1]) if link is not None else None
        return found

    def send(self, method: str, path: str, body: object, *, accept: tuple[int, ...] = (200, 201, 204)) -> HttpReply:
        """Every effect on the forge passes here, so two crash points cover all of them."""
        with self._writing:
            wait = self._wrote_at + self._pace - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            crash.reach(Point.FORGE_WRITE_BEFORE_SEND)
            try:
                reply = self._checked(method, path, body, accept)
            finally:
                self._wrote_at = time.monotonic()
            crash.reach(Point.FORGE_WRITE_AFTER_SEND)
            return reply

    def _inside(self, url: str) -> str | None:
        """A link of the forge as a path below our own address. One that leads elsewhere is not followed."""
        return url.removeprefix(self.api) if url.startswith(f"{self.api}/") else None

    def _checked(self, method: str, path: str, body: object, accept: tuple[int, ...]) -> HttpReply:
        left = self._closed_until - self._clock()
        if left > 0:
            raise ForgeLimited(f"The forge's limit is used up; Legion waits {left:.0f} s.", self._closed_until)
        reply = self._request(method, path, body)
        if reply.status in accept:
            self._refusals = 0
            return reply
        if reply.status >= 500 or reply.status == 408:
            raise ForgeUnreachable(f"The forge has trouble ({reply.status}); Legion tries again later.")
        if reply.status == 429 or (reply.status == 403 and self._is_limit(reply)):
            raise self._limited(reply)
        return reply

    def _is_limit(self, reply: HttpReply) -> bool:
        used_up = reply.headers.get("x-ratelimit-remaining") == "0"
        return used_up or "retry-after" in reply.headers or "rate limit" in reply.message.lower()

    def _limited(self, reply: HttpReply) -> ForgeLimited:
        """As the forge says; where it does not, a minute, and twice as long each time."""
        now = self._clock()
        self._refusals += 1
        after, reset = reply.headers.get("retry-after", ""), reply.headers.get("x-ratelimit-reset", "")
        if after.isdigit():
            wait = float(after)
        elif reply.headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
            wait = float(reset) - now
        else:
            wait = _SHORTEST_WAIT * 2 ** (self._refusals - 1)
        self._closed_until = now + max(1.0, min(wait, _LONGEST_WAIT))
        return ForgeLimited("The forge limits Legion's requests for now; it continues by itself.", self._closed_until)

    def _request(self, method: str, path: str, body: object) -> HttpReply:
        url = path if path.startswith("http") else f"{self.api}{path}"
        known = self._known.get(url) if method == "GET" else None
        headers = {"Accept": self._accept, "User-Agent": f"legion/{__version__}"}
        if token := self._token():
            headers["Authorization"] = f"Bearer {token}"
        if known is not None:
            headers["If-None-Match"] = known[0]
        raw = None
        if body is not None:
            raw = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data=raw, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=_PATIENCE) as found:
                reply = _read(found.status, found.headers, found.read(_BIGGEST))
        except urllib.error.HTTPError as found:
            with found:
                reply = _read(found.code, found.headers, found.read(_BIGGEST))
        except (OSError, http.client.HTTPException, ValueError) as trouble:
            host = urlsplit(url).hostname
            reason = getattr(trouble, "reason", None) or type(trouble).__name__
            raise ForgeUnreachable(f"{host} cannot be reached ({reason}); Legion tries again later.") from None
        if reply.status == 304 and known is not None:
            return known[1]
        etag = reply.headers.get("etag")
        if method == "GET" and etag and reply.status == 200:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[url] = (etag, reply)
        return reply


def _read(status: int, headers: Any, raw: bytes) -> HttpReply:  # noqa: ANN401 - a message of http.client
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = None
    return HttpReply(status=status, headers={name.lower(): value for name, value in headers.items()}, body=body)


def is_local(url: str) -> bool:
    """Whether the address is on this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("127.0.0.1", "::1", "localhost") or host.endswith(".localhost")


def refuse_open_http(url: str) -> None:
    """Raise ForgeProblem where a token would travel unencrypted over a network."""
    if urlsplit(url).scheme == "http" and not is_local(url):
        raise ForgeProblem(f"{url} is not encrypted, so Legion sends no token there: use https://.")
