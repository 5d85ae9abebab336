"""The egress proxy of one run: HTTP, CONNECT and SOCKS5 on one port, held to the run's policy.

It serves each connection on a thread of its own, outside of the sandbox. A name is resolved once, and what it resolves
to is what is connected to. A TLS client must ask for the name that it connected to.
"""

from __future__ import annotations

import contextlib
import re
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from legion.domain.egress import FINAL, OTHER_NAME, EgressPolicy, NetworkPlace, address, host_of, is_name, server_name

PORT = 3128
"""Inside, on the sandbox's own loopback."""
_MOST_HEAD = 64 << 10
_MOST_HELLO = (16 << 10) + 5
_PIECE = 256 << 10
_CONNECTING = 20.0
_WAITING = 60.0
"""Seconds that the first bytes of a client may take."""
_IDLE = 3600.0
_LINE = re.compile(rb"([A-Z]{1,20}) (\S{1,8192}) HTTP/1\.[01]")
_PLAIN_HTTP = 80
_ASK = " The person may allow it, and sees this. Until then do without it: trying again changes nothing."
_NOT_PASSED_ON = (b"proxy-connection", b"proxy-authorization", b"connection", b"keep-alive", b"host")


class EgressRefused(Exception):
    """The policy says no. The words say why, after the host."""


@dataclass(frozen=True, kw_only=True)
class UpstreamProxy:
    """The person's own proxy, which the run's requests go on through; empty: there is none."""

    http: str = ""
    https: str = ""
    direct: tuple[str, ...] = ()
    """Names that are reached without it."""

    def of(self, host: str, *, tls: bool) -> tuple[str, int] | None:
        named = self.https if tls else self.http
        if not named or any(host == one or host.endswith("." + one.lstrip(".*")) for one in self.direct):
            return None
        parts = urlsplit(named if "//" in named else f"http://{named}")
        return (parts.hostname, parts.port or 80) if parts.hostname else None

    def to_json(self) -> dict[str, Any]:
        return {"http": self.http, "https": self.https, "direct": list(self.direct)}

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> UpstreamProxy:
        return UpstreamProxy(http=facts["http"], https=facts["https"], direct=tuple(facts["direct"]))


@dataclass(frozen=True, kw_only=True)
class EgressProxy:
    policy: EgressPolicy
    upstream: UpstreamProxy
    refused: Callable[[str, int, str], None]
    """Told of each host and port that was refused, and why."""
    granted: Callable[[], tuple[NetworkPlace, ...]]
    """What a person has allowed since the run began."""

    def serve(self, client: socket.socket) -> None:
        client.settimeout(_WAITING)
        first = client.recv(1, socket.MSG_PEEK)
        if first == b"\x05":
            self._socks(client)
        elif first:
            self._http(client)

    def serve_named(self, host: str, port: int, client: socket.socket) -> None:
        """A client that knows of no proxy: it connects to the address that it got for the name."""
        try:
            with self._connected(host, port, tls=True) as server:
                self._tunnel(client, server, host, port, b"")
        except EgressRefused as why:
            if port == _PLAIN_HTTP:
                _answer(client, 403, f"Legion: {why}")

    def _http(self, client: socket.socket) -> None:
        head, rest = _head(client)
        line, _, fields = head.partition(b"\r\n")
        found = _LINE.fullmatch(line)
        if found is None:
            _answer(client, 400, "This is no request that a proxy knows.")
            return
        method, target = found[1], found[2].decode("latin-1")
        try:
            if method == b"CONNECT":
                host, port = _authority(target, None)
                with self._connected(host, port, tls=True) as server:
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    self._tunnel(client, server, host, port, rest)
                return
            parts = urlsplit(target)
            if parts.scheme != "http" or not parts.netloc:
                _answer(client, 400, "A proxy needs the whole address: http://HOST/PATH, or CONNECT for https.")
                return
            host, port = _authority(parts.netloc.rpartition("@")[2], 80)
            path = target[len("http://") + len(parts.netloc) :] or "/"
            with self._connected(host, port, tls=False) as server:
                named = _shown(host, port).removesuffix(":80")
                goal = path if path.startswith("/") else f"/{path}"
                if self.upstream.of(host, tls=False) is not None:
                    # Not as the client wrote it: what was looked at is what the next reader finds.
                    goal = f"http://{named}{goal}"
                kept = [one for one in fields.split(b"\r\n") if one.partition(b":")[0].lower() not in _NOT_PASSED_ON]
                line = b"%s %s HTTP/1.1" % (method, goal.encode("latin-1"))
                server.sendall(
                    b"\r\n".join([line, b"Host: " + named.encode(), *kept, b"Connection: close", b"", b""]) + rest
                )
                pump(client, server)
        except EgressRefused as why:
            _answer(client, 403, f"Legion: {why}")
        except ValueError as wrong:
            _answer(client, 400, f"Legion: {wrong}.")
        except OSError as broken:
            _answer(client, 502, f"Legion: {broken.strerror or broken}.")

    def _socks(self, client: socket.socket) -> None:
        _, methods = _exactly(client, 2)
        if 0 not in _exactly(client, methods):
            client.sendall(b"\x05\xff")
            return
        client.sendall(b"\x05\x00")
        _, command, _, kind = _exactly(client, 4)
        if kind == 3:
            text = _exactly(client, _exactly(client, 1)[0]).decode("latin-1")
        elif kind in (1, 4):
            family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
            text = socket.inet_ntop(family, _exactly(client, size))
        else:
            client.sendall(_socks_answer(8))
            return
        (port,) = struct.unpack("!H", _exactly(client, 2))
        if command != 1:
            client.sendall(_socks_answer(7))
            return
        try:
            host = host_of(text)
            with self._connected(host, port, tls=True) as server:
                client.sendall(_socks_answer(0))
                self._tunnel(client, server, host, port, b"")
        except (EgressRefused, ValueError):
            client.sendall(_socks_answer(2))
        except OSError:
            client.sendall(_socks_answer(4))

    def _tunnel(self, client: socket.socket, server: socket.socket, host: str, port: int, sent: bytes) -> None:
        """A server that speaks first gets its way; what a TLS client asks for is looked at before it is sent."""
        while not sent:
            ready, _, _ = select.select([client, server], [], [], _IDLE)
            if server in ready:
                pump(client, server)
                return
            if not ready or not (sent := client.recv(_PIECE)):
                return
        while sent[:1] == b"\x16" and len(sent) < min(_MOST_HELLO, 5 + int.from_bytes(sent[3:5].ljust(2, b"\xff"))):
            more = client.recv(_PIECE)
            if not more:
                return
            sent += more
        asked = server_name(sent)
        if asked is None and sent[:1] == b"\x16" and is_name(host):
            self.refused(host, port, f"{OTHER_NAME} in a TLS message that does not show for which name")
            return
        if asked and is_name(host) and asked.removesuffix(".") != host:
            self.refused(host, port, f"{OTHER_NAME} as {asked[:100]!r}, which is another name")
            return
        server.sendall(sent)
        pump(client, server)

    def _connected(self, host: str, port: int, *, tls: bool) -> socket.socket:
        """Raises EgressRefused, and OSError where no address answers."""
        policy = self.policy.with_places(self.granted())
        self._obey(host, port, policy.fault(host, port))
        open_ones, closed = self._addresses(policy, host, port)
        through = self.upstream.of(host, tls=tls)
        if through is not None:
            # It resolves the name once more: none of its addresses may be one that the run may not reach.
            self._obey(host, port, closed)
            return _through(through, host, port) if tls else socket.create_connection(through, _CONNECTING)
        if not open_ones:
            self._obey(host, port, closed)
        broken = OSError(f"{host} is not known: its name leads to no address")
        for family, kind, protocol, _, place in open_ones:
            try:
                return _open(family, kind, protocol, place)
            except OSError as failure:
                broken = failure
        raise broken

    def _addresses(self, policy: EgressPolicy, host: str, port: int) -> tuple[list[Any], str]:
        """What the host resolves to, as far as the run may reach it, and why not the rest; empty: all of it."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror:
            return [], ""
        open_ones, closed = [], ""
        for one in found:
            where = address(str(one[4][0]))
            assert where is not None, "a resolver answers with addresses"
            fault = policy.resolved_fault(host, port, where)
            if not fault and _is_ours(one[0], one[4]) and not any(named.host == host for named in policy.private):
                fault = f"resolves to {where}, which is this machine"
            if fault:
                closed = fault
            else:
                open_ones.append(one)
        return open_ones, closed

    def _obey(self, host: str, port: int, fault: str) -> None:
        if fault:
            self.refused(host, port, fault)
            raise EgressRefused(f"{_shown(host, port)} {fault}.{'' if fault.startswith(FINAL) else _ASK}")


def pump(one: socket.socket, other: socket.socket) -> None:
    """Pass on what each says to the other until both have ended. A thread for each way: neither waits for the other."""
    for end in (one, other):
        end.settimeout(None)
    back = threading.Thread(target=_pass_on, args=(other, one), daemon=True)
    back.start()
    _pass_on(one, other)
    back.join()


def _pass_on(speaker: socket.socket, listener: socket.socket) -> None:
    try:
        while piece := speaker.recv(_PIECE):
            listener.sendall(piece)
        listener.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (speaker, listener):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _open(family: int, kind: int, protocol: int, place: Any) -> socket.socket:  # noqa: ANN401 - as getaddrinfo gives it
    made = socket.socket(family, kind, protocol)
    try:
        made.settimeout(_CONNECTING)
        made.connect(place)
    except OSError:
        made.close()
        raise
    return made


def _through(proxy: tuple[str, int], host: str, port: int) -> socket.socket:
    made = socket.create_connection(proxy, _CONNECTING)
    try:
        made.sendall(f"CONNECT {_shown(host, port)} HTTP/1.1\r\nHost: {_shown(host, port)}\r\n\r\n".encode())
        said = b""
        while not said.endswith(b"\r\n\r\n"):
            # Not one byte more: what follows is the server's.
            piece = made.recv(1)
            if not piece or len(said) > _MOST_HEAD:
                raise OSError(f"your own proxy did not answer for {_shown(host, port)}")
            said += piece
        if not re.match(rb"HTTP/1\.[01] 2\d\d", said):
            raise OSError(f"your own proxy refused {_shown(host, port)}: {said[:100].decode('latin-1')}")
    except OSError:
        made.close()
        raise
    return made


def _is_ours(family: int, place: Any) -> bool:  # noqa: ANN401 - as getaddrinfo gives it
    """Only an address of this machine can be bound: its services may listen there for others, but not for agents."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as tried:
        tried.bind((place[0], 0, *place[2:]))
        return True
    return False


def _head(end: socket.socket) -> tuple[bytes, bytes]:
    """The head of a message without its last line break, and what came behind it."""
    read = b""
    while b"\r\n\r\n" not in read:
        piece = end.recv(_PIECE)
        if not piece or len(read) > _MOST_HEAD:
            raise ValueError("the head of the request did not end")
        read += piece
    head, _, rest = read.partition(b"\r\n\r\n")
    return head, rest


def _authority(text: str, port: int | None) -> tuple[str, int]:
    host, colon, number = text.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        host, number = text, ""
    if not number and port is None:
        raise ValueError(f"{text[:80]!r} names no port")
    if number and not (number.isascii() and number.isdigit() and len(number) < 6):
        raise ValueError(f"{text[:80]!r} names no port")
    return host_of(host), int(number) if number else port or 0


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _exactly(end: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        piece = end.recv(size - len(read))
        if not piece:
            raise OSError("the client ended")
        read += piece
    return read


def _socks_answer(code: int) -> bytes:
    return struct.pack("!BBBB4sH", 5, code, 0, 1, b"\0" * 4, 0)


def _answer(client: socket.socket, status: int, sentence: str) -> None:
    body = sentence.encode("utf-8", "replace") + b"\n"
    words = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}[status]
    head = f"HTTP/1.1 {status} {words}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    with contextlib.suppress(OSError):
        client.sendall(head.encode() + b"X-Legion-Refused: 1\r\nConnection: close\r\n\r\n" + body)


def variables(places: str = "") -> dict[str, str]:
    """What leads most programs to the proxy: curl, git, pip, uv, npm, cargo, go, apt. Those that know of none reach the
    usual ports all the same (`bridge`). No SOCKS: httpx would need a package.
    """
    direct = "localhost,127.0.0.1,::1" + (f",{places}" if places else "")
    proxy = f"http://127.0.0.1:{PORT}"
    named = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": direct}
    return {**named, **{name.lower(): value for name, value in named.items()}, "NODE_USE_ENV_PROXY": "1"}
