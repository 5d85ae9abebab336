"""HTTPS to the head, with the head's own authority pinned: no other certificate is accepted, and no proxy asked."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from legion.machine.errors import Fenced, HeadRefused, HeadUnreachable, MachineError, NotAMachine, OffsetGap, OutOfDate

PREFIX = "/machine/v1"
PATIENCE = 20.0
_MOST_ANSWER = 64 << 20


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
    """Many threads may use it; each has a connection of its own, which is opened again after any fault."""

    def __init__(self, url: str, *, authority: str, token: str = "") -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._token = token
        self._context = tls_context(authority)
        self._local = threading.local()
        self._open: set[http.client.HTTPSConnection] = set()
        self._lock = threading.Lock()
        self._hung_up = False

    def close(self) -> None:
        """No thread may use it any more."""
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()

    def hang_up(self) -> None:
        """End the request that waits, and send no other. For a signal handler: it waits for no lock."""
        self._hung_up = True
        for connection in tuple(self._open):
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    # Not the one of TLS, which would leave the interrupted read without its state.
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

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
        try:
            answer = self._request(method, asked, data, headers, patience)
            content_ = answer.read(_MOST_ANSWER)
        except (OSError, http.client.HTTPException) as broken:
            self._forget()
            raise HeadUnreachable(f"The head at {self._host} does not answer ({broken}).") from broken
        except BaseException:
            self._forget()
            raise
        if answer.status >= 300:
            raise _error(answer.status, content_)
        return HeadAnswer(body=content_, headers={name.lower(): value for name, value in answer.getheaders()})

    def _request(
        self, method: str, asked: str, data: bytes | None, headers: Mapping[str, str], patience: float
    ) -> http.client.HTTPResponse:
        """The head closes connections that were idle; requests may be repeated, so such a one is sent again at once."""
        connection = self._connection(patience)
        was_open = connection.sock is not None
        try:
            connection.request(method, asked, body=data, headers=headers)
            return connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
            if not was_open or self._hung_up:
                raise
        self._forget()
        connection = self._connection(patience)
        connection.request(method, asked, body=data, headers=headers)
        return connection.getresponse()

    def _connection(self, patience: float) -> http.client.HTTPSConnection:
        known: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if known is None:
            known = http.client.HTTPSConnection(self._host, self._port, timeout=patience, context=self._context)
            self._local.connection = known
            with self._lock:
                self._open.add(known)
        known.timeout = patience
        if known.sock is not None:
            known.sock.settimeout(patience)
        return known

    def _forget(self) -> None:
        known: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        if known is not None:
            known.close()
            with self._lock:
                self._open.discard(known)


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
