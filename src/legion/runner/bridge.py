"""The bridge of one run: what a sandbox with a network of its own reaches beyond it, and nothing else.

Programs reach names through a proxy, or, where they know of none, by an address of their own loopback that stands for
the name: the bridge is also their name server, and listens at the usual ports of all those addresses.

The runner makes the listening sockets inside that network, before the program starts, and serves them from outside: no
process of ours runs in the sandbox, and no address of the host is reachable from there. Ports have the numbers that
they have on the host, so that addresses are the same on both sides.
"""

from __future__ import annotations

import contextlib
import fcntl
import hmac
import ipaddress
import os
import re
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from legion import __version__
from legion.domain.egress import EgressMode, EgressPolicy, NetworkPlace, host_of, is_name
from legion.domain.errors import NotAllowed
from legion.domain.text import to_json
from legion.runner.egress import PORT, EgressProxy, UpstreamProxy, pump
from legion.system import kernel

_LOOPBACK = "127.0.0.1"
_ANYWHERE = "0.0.0.0"
_NAME_SERVER = 53
_USUAL_PORTS = (22, 80, 443, 9418)
_OWN_ADDRESS = "127.127.0.1"
_SET_ADDRESS = 0x8916
"""SIOCSIFADDR."""
_FIRST_STANDING_FOR = int(ipaddress.IPv4Address("127.128.0.0"))
_MOST_NAMES = 1 << 16
_MOST_AT_ONCE = 200
"""Connections of one run."""
_MOST_HEAD = 64 << 10
_PATIENCE = 60.0
_MOST_QUESTION = 4096
_ANSWER = struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4)
"""The name of the question, its IPv4 address, for a minute."""
_FREEBIND = 15
"""IP_FREEBIND: the loopback may not be up yet."""
_TOKEN = re.compile(rb"(?im)^(?:authorization:[ \t]*bearer|x-api-key:)[ \t]*(\S+)[ \t]*\r?$")
_CONNECTION = re.compile(rb"(?im)^(?:connection|keep-alive|upgrade):[^\r\n]*\r\n")


@dataclass(frozen=True, kw_only=True)
class NetworkBridge:
    """What a sandbox's loopback leads to."""

    egress: EgressPolicy
    upstream: UpstreamProxy
    forwards: tuple[int, ...] = ()
    """Ports of the host's loopback: the gateway, and services that the person named."""
    sockets: tuple[Path, ...] = ()
    """Sockets of the host that the person named, which answer at the same path."""
    api: tuple[int, ...] = ()
    """Ports of Legion's own API, which answers to the tokens of this run alone."""
    tokens: tuple[str, ...] = ()
    inward: tuple[int, ...] = ()
    """Ports of the run that the host's loopback leads to, so that a person can open what it serves."""

    def to_json(self) -> dict[str, Any]:
        return {one.name: plain(getattr(self, one.name)) for one in fields(self)}

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> NetworkBridge:
        return NetworkBridge(
            egress=EgressPolicy.from_json(facts["egress"]),
            upstream=UpstreamProxy.from_json(facts["upstream"]),
            forwards=tuple(facts["forwards"]),
            # A daemon of the last release does not write them.
            sockets=tuple(map(Path, facts.get("sockets", ()))),
            api=tuple(facts["api"]),
            tokens=tuple(facts["tokens"]),
            inward=tuple(facts["inward"]),
        )


def plain(value: Any) -> Any:  # noqa: ANN401 - what a spec holds
    """A value as JSON has it."""
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if hasattr(value, "to_json"):
        return value.to_json()
    return str(value) if isinstance(value, Path) else value.value if isinstance(value, Enum) else value


@dataclass(frozen=True)
class _Door:
    """Where a sandbox's programs find something: a listening socket in their network."""

    port: int
    address: str = _LOOPBACK
    kind: int = socket.SOCK_STREAM


class PersonsWord(Protocol):
    """How a bridge asks the person."""

    def refused(self, host: str, port: int, why: str) -> None:
        """The run wanted a host that its network does not lead to."""
        ...

    def granted(self) -> tuple[NetworkPlace, ...]:
        """What the person has allowed since the run began."""
        ...


class BridgeServer:
    """Serves a bridge until the sandbox ends. Its threads hold nothing that outlives the runner."""

    def __init__(self, bridge: NetworkBridge, pid: int, person: PersonsWord) -> None:
        """`pid`: a process in the sandbox, whose program has not started yet. Raises OSError."""
        self._bridge = bridge
        self._pid = pid
        self._proxy = EgressProxy(
            policy=bridge.egress, upstream=bridge.upstream, refused=person.refused, granted=person.granted
        )
        self._room = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._names: dict[str, str] = {}
        self._hosts: dict[str, str] = {}
        doors: dict[_Door, Callable[[socket.socket], None]] = {
            _Door(PORT): self._proxy.serve,
            **{_Door(port): partial(_forward, port) for port in bridge.forwards},
            **{_Door(port): partial(self._call_api, port) for port in bridge.api},
        }
        if bridge.egress.mode is not EgressMode.NONE:
            listed = (place.port for place in bridge.egress.allow if place.port is not None)
            taken = {door.port for door in doors}
            usual = {_Door(port, _ANYWHERE) for port in (*_USUAL_PORTS, *listed) if port not in taken}
            doors |= {door: partial(self._call_named, door.port) for door in usual}
            doors[_Door(_NAME_SERVER, kind=socket.SOCK_DGRAM)] = self._tell_name
        self._selector = selectors.DefaultSelector()
        self._open(doors)
        for port in bridge.inward:
            # Another program may have taken it since; then only the run itself reaches its own port.
            with contextlib.suppress(OSError):
                self._selector.register(_listener(_Door(port)), selectors.EVENT_READ, partial(self._call_inside, port))
        self._wake, wakes = socket.socketpair()
        self._selector.register(wakes, selectors.EVENT_READ, None)
        self._added: list[int] = []
        self._thread = threading.Thread(target=self._accept, name="bridge", daemon=True)
        self._thread.start()

    def forward(self, port: int) -> None:
        """Lead to one more port of the host's loopback. It is open when this returns."""
        self._added.append(port)
        self._wake.send(b"+")
        self._wake.recv(1)

    def close(self) -> None:
        """Nothing new is accepted. Open connections end with the sandbox."""
        self._wake.close()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()

    def _open(self, doors: Mapping[_Door, Callable[[socket.socket], None]]) -> None:
        for made, serve in zip(_inside(self._pid, partial(_listen, [*doors])), doors.values(), strict=True):
            self._selector.register(made, selectors.EVENT_READ, serve)

    def _accept(self) -> None:
        while True:
            for key, _ in self._selector.select():
                assert isinstance(key.fileobj, socket.socket)
                if key.data is None:
                    if not key.fileobj.recv(1):
                        return
                    port = self._added.pop(0)
                    with contextlib.suppress(OSError):
                        self._open({_Door(port): partial(_forward, port)})
                    key.fileobj.send(b"+")
                    continue
                with contextlib.suppress(OSError):
                    if key.fileobj.type is socket.SOCK_DGRAM:
                        key.data(key.fileobj)
                        continue
                    end, _ = key.fileobj.accept()
                    if self._room.acquire(blocking=False):
                        threading.Thread(target=self._serve, args=(end, key.data), daemon=True).start()
                    else:
                        end.close()

    def _serve(self, end: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        try:
            with end, contextlib.suppress(OSError, ValueError):
                serve(end)
        finally:
            self._room.release()

    def _call_api(self, port: int, end: socket.socket) -> None:
        """One request for each connection, and only with a token of this run: so no other caller's ever passes."""
        end.settimeout(_PATIENCE)
        read = b""
        while b"\r\n\r\n" not in read:
            piece = end.recv(_MOST_HEAD)
            if not piece or len(read) > _MOST_HEAD:
                return
            read += piece
        head, _, rest = read.partition(b"\r\n\r\n")
        given = _TOKEN.findall(head + b"\r\n")
        if len(given) != 1 or not any(hmac.compare_digest(given[0], one.encode()) for one in self._bridge.tokens):
            end.sendall(_refusal())
            return
        head = _CONNECTION.sub(b"", head + b"\r\n") + b"Connection: close\r\n\r\n"
        with socket.create_connection((_LOOPBACK, port), _PATIENCE) as server:
            server.sendall(head + rest)
            pump(end, server)

    def _tell_name(self, end: socket.socket) -> None:
        """Answer one question for a name with the address that stands for it. Nothing is asked outside."""
        question, asker = end.recvfrom(_MOST_QUESTION)
        asked = _asked(question)
        if asked is None:
            return
        name, kind, length = asked
        known = self._standing_for(name)
        answer = b"" if known is None or kind != 1 else _ANSWER + socket.inet_aton(known)
        flags = 0x8180 if known is not None else 0x8183
        head = question[:2] + struct.pack("!5H", flags, 1, bool(answer), 0, 0)
        end.sendto(head + question[12:length] + answer, asker)

    def _standing_for(self, name: str) -> str | None:
        try:
            host = host_of(name)
        except ValueError:
            return None
        if "." not in host or not is_name(host) or host.endswith(".arpa"):
            return None
        if host not in self._names and len(self._names) < _MOST_NAMES:
            made = str(ipaddress.IPv4Address(_FIRST_STANDING_FOR + len(self._names)))
            self._names[host], self._hosts[made] = made, host
        return self._names.get(host)

    def _call_named(self, port: int, end: socket.socket) -> None:
        host = self._hosts.get(end.getsockname()[0])
        if host is not None:
            self._proxy.serve_named(host, port, end)

    def _call_inside(self, port: int, end: socket.socket) -> None:
        (made,) = _inside(self._pid, partial(_connect, port))
        with made:
            pump(end, made)


def _refusal() -> bytes:
    """In the form of Legion's own errors, so that its command line shows the sentence."""
    why = NotAllowed("The token is missing or wrong: from here Legion answers only to the token of this run.")
    problem = {"schema": "legion.problem/1", "code": why.code, "message": why.message, "exit_code": why.exit_code}
    body = to_json(problem).encode()
    head = f"HTTP/1.1 403 Forbidden\r\nLegion-Version: {__version__}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def _forward(port: int, end: socket.socket) -> None:
    with socket.create_connection((_LOOPBACK, port), _PATIENCE) as server:
        pump(end, server)


def _inside(pid: int, make: Callable[[], Sequence[socket.socket]]) -> list[socket.socket]:
    """Sockets made in the network of that process; where it has other users, by a child of ours that moves there.
    Raises OSError.
    """
    if kernel.has_our_users(pid):
        with kernel.network_of(pid):
            return list(make())
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            try:
                kernel.enter_network(pid)
                made = make()
                socket.send_fds(theirs, [b"made"], [one.fileno() for one in made])
            except OSError as failure:
                theirs.send(f"{failure.errno or 0} {failure.strerror or failure}".encode()[:400])
        os._exit(0)
    theirs.close()
    with ours:
        said, handles, _, _ = socket.recv_fds(ours, 400, _MOST_AT_ONCE)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)
    if said != b"made":
        number, _, words = said.decode("utf-8", "replace").partition(" ")
        raise OSError(int(number or 0), f"the network of the sandbox could not be bridged: {words or 'no answer'}")
    return [socket.socket(fileno=handle) for handle in handles]


def _listen(wanted: Sequence[_Door]) -> list[socket.socket]:
    if any(door.address == _ANYWHERE for door in wanted):
        # With 127.0.0.1 alone, resolvers take this for a machine without IPv4.
        with socket.socket(type=socket.SOCK_DGRAM) as any_one:
            own = socket.inet_aton(_OWN_ADDRESS)
            fcntl.ioctl(any_one, _SET_ADDRESS, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, own))
    return [_listener(door) for door in wanted]


def _listener(door: _Door) -> socket.socket:
    made = socket.socket(type=door.kind)
    made.setsockopt(socket.IPPROTO_IP, _FREEBIND, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((door.address, door.port))
    if door.kind == socket.SOCK_STREAM:
        made.listen(128)
    return made


def _asked(question: bytes) -> tuple[str, int, int] | None:
    """The name and kind that a message to a name server asks for, and where the question ends."""
    at, labels = 12, []
    try:
        while size := question[at]:
            labels.append(question[at + 1 : at + 1 + size].decode("ascii"))
            at += 1 + size
        (kind,) = struct.unpack("!H", question[at + 1 : at + 3])
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    return ".".join(labels), kind, at + 5


def _connect(port: int) -> list[socket.socket]:
    return [socket.create_connection((_LOOPBACK, port), _PATIENCE)]
