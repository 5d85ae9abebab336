"""HTTPS to the head, with the head's own authority pinned: no other certificate is accepted, and no proxy asked.

MachineError
├── HeadUnreachable   no answer, or none that makes sense: try again
├── OutOfDate         the two releases are too far apart
├── NotAMachine       the token is not valid, or no longer
├── Fenced            the run is not this machine's, or no longer
└── HeadRefused           the head refuses this request
    └── OffsetGap     a piece does not continue its file
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from legion.domain.errors import LegionError, NotAllowed


class MachineError(LegionError):
    pass


class HeadUnreachable(MachineError):
    pass


class OutOfDate(MachineError):
    pass


class NotAMachine(MachineError):
    exit_code = NotAllowed.exit_code


class Fenced(MachineError):
    pass


class HeadRefused(MachineError):
    pass


class OffsetGap(HeadRefused):
    def __init__(self, size: int) -> None:
        super().__init__(f"The head has {size} bytes of this file.")
        self.size = size


PREFIX = "/machine/v1"
PATIENCE = 20.0
_MOST_ANSWER = 64 << 20
_MOST_IDLE = 8
"""Connections that wait for the next request."""


@dataclass(frozen=True, kw_only=True)
class HeadAnswer:
    body: bytes
    headers: Mapping[str, str]

    def json(self) -> dict[str, Any]:
        try:
            facts = json.loads(self.body)
        except ValueError as strange:
            raise HeadUnreachable("The head's answer is not JSON: is this its address?") from strange
        if not isinstance(facts, dict):
            raise HeadUnreachable("The head's answer is no object: is this its address?")
        return facts


class HeadLink:
    """Many threads may use it. A request has a connection to itself; a few wait open for the next requests, whichever
    thread sends them, and one that had a fault is closed.
    """

    def __init__(self, url: str, *, authority: str, token: str = "", others: Sequence[str] = ()) -> None:
        """`others`: addresses of the same head, the one to prefer first. All have certificates of its authority."""
        self._invited = url
        self._urls = _all_of(others, url)
        self._token = token
        self._context = tls_context(authority)
        self._open: set[http.client.HTTPSConnection] = set()
        self._idle: list[http.client.HTTPSConnection] = []
        self._lock = threading.Lock()
        self._hung_up = False

    def close(self) -> None:
        """No thread may use it any more."""
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()
            self._idle.clear()

    def hang_up(self) -> None:
        """End the request that waits, and send no other. For a signal handler: it waits for no lock."""
        self._hung_up = True
        for connection in tuple(self._open):
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    # Not the one of TLS, which would leave the interrupted read without its state.
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        """The address that is used now."""
        return self._urls[0]

    def know(self, urls: Sequence[str]) -> bool:
        """The head's addresses have changed. Whether that is so."""
        known = _all_of(urls, self._invited)
        with self._lock:
            if set(known) == set(self._urls):
                return False
            self._urls = known
        return True

    def _try_next(self, failed: tuple[str, int]) -> None:
        """The address did not answer, or could not; another thread may have noticed that before."""
        with self._lock:
            if _place(self._urls[0]) == failed:
                self._urls = (*self._urls[1:], self._urls[0])

    @property
    def context(self) -> ssl.SSLContext:
        return self._context

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content: Mapping[str, Any] | None = None,
        patience: float = PATIENCE,
    ) -> HeadAnswer:
        """Raises a MachineError for everything but success."""
        data = json.dumps(content).encode() if content is not None else body
        asked = f"{PREFIX}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"legion-machine": self._token, "content-type": "application/json"}
        place = _place(self.url)
        connection = self._lend(place, patience)
        try:
            answer = self._request(connection, method, asked, data, headers)
            content_ = answer.read(_MOST_ANSWER)
        except (OSError, http.client.HTTPException) as broken:
            self._drop(connection)
            self._try_next(place)
            raise HeadUnreachable(f"The head at {place[0]} does not answer ({broken}).") from broken
        except BaseException:
            self._drop(connection)
            raise
        self._take_back(connection, whole=answer.isclosed())
        if answer.status >= 500:
            self._try_next(place)
        if answer.status >= 300:
            raise _error(answer.status, content_)
        return HeadAnswer(body=content_, headers={name.lower(): value for name, value in answer.getheaders()})

    def _request(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        asked: str,
        data: bytes | None,
        headers: Mapping[str, str],
    ) -> http.client.HTTPResponse:
        """The head closes connections that were idle; requests may be repeated, so such a one is sent again at once."""
        was_open = connection.sock is not None
        try:
            connection.request(method, asked, body=data, headers=headers)
            return connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
            if not was_open or self._hung_up:
                raise
        connection.close()
        connection.request(method, asked, body=data, headers=headers)
        return connection.getresponse()

    def _lend(self, place: tuple[str, int], patience: float) -> http.client.HTTPSConnection:
        with self._lock:
            fitting = [one for one in self._idle if (one.host, one.port) == place]
            elsewhere = [one for one in self._idle if one not in fitting]
            connection = fitting.pop() if fitting else None
            self._idle = fitting
        for one in elsewhere:
            self._drop(one)
        if connection is None:
            connection = http.client.HTTPSConnection(*place, context=self._context)
            with self._lock:
                self._open.add(connection)
        connection.timeout = patience
        if connection.sock is not None:
            connection.sock.settimeout(patience)
        return connection

    def _take_back(self, connection: http.client.HTTPSConnection, *, whole: bool) -> None:
        """`whole`: the answer was read to its end."""
        with self._lock:
            keep = whole and connection in self._open and len(self._idle) < _MOST_IDLE
            if keep:
                self._idle.append(connection)
        if not keep:
            self._drop(connection)

    def _drop(self, connection: http.client.HTTPSConnection) -> None:
        connection.close()
        with self._lock:
            self._open.discard(connection)


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 443


def _all_of(urls: Sequence[str], invited: str) -> tuple[str, ...]:
    """The address of the invitation is always one of them: it may lead through a tunnel that the head does not know."""
    return tuple(dict.fromkeys((*urls, invited)))


def tls_context(authority: str) -> ssl.SSLContext:
    """Trusts this authority and no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority)
    return context


def fetch_authority(url: str, fingerprint: str) -> str:
    """The head's authority, if it has this fingerprint. Nothing is sent before that is known. Raises NotAMachine."""
    parts = urlsplit(url)
    blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    blind.check_hostname = False
    # What arrives is public, and compared with the fingerprint below.
    blind.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port or 443, timeout=PATIENCE, context=blind)
    try:
        connection.request("GET", f"{PREFIX}/authority")
        text = connection.getresponse().read(1 << 20).decode("ascii", "replace")
    except (OSError, http.client.HTTPException) as broken:
        raise HeadUnreachable(f"The head at {url} does not answer ({broken}): is the address reachable?") from broken
    finally:
        connection.close()
    try:
        found = hashlib.sha256(ssl.PEM_cert_to_DER_cert(text.strip())).hexdigest()
    except ValueError:
        found = ""
    if found != fingerprint.lower():
        raise NotAMachine(
            f"What answers at {url} is not the head that invited this machine: its certificate has another fingerprint."
        )
    return text


def _error(status: int, body: bytes) -> MachineError:
    try:
        facts = json.loads(body)
        message = str(facts.get("message", ""))
        code = str(facts.get("code", ""))
    except (ValueError, AttributeError):
        facts, message, code = {}, "", ""
    message = message or f"The head answered with status {status}."
    if status == 401:
        return NotAMachine(message)
    if status == 426:
        return OutOfDate(message)
    if status == 409 and code == "stale_run":
        return Fenced(message)
    if status == 416 and isinstance(facts.get("size"), int):
        return OffsetGap(facts["size"])
    return HeadUnreachable(message) if status >= 500 else HeadRefused(message)
