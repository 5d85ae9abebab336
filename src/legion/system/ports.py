"""Opens a listening socket on a wanted port, or on the next free one."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Sequence

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_TRIES = 100
_BACKLOG = 1024
"""Connections that may wait to be accepted: many agents start at the same time."""


class Unusable(Exception):
    """The system refuses this port, for another reason than that it is in use."""

    def __init__(self, port: int, reason: str) -> None:
        super().__init__(f"port {port}: {reason}")
        self.port = port
        self.reason = reason


def listen(host: str, *wanted: int) -> socket.socket | None:
    """Listen on the first wanted port that is free, or on the next free one after the last.

    None where none is free. Raises Unusable.
    """
    return next((one for number in _tried(wanted) if (one := _opened(host, number)) is not None), None)


def listen_by_name(host: str, *wanted: int) -> list[socket.socket]:
    """Listen at every address that a browser may take this host for: `localhost` is 127.0.0.1 or ::1.

    A port counts as free only where all of them have it. Empty where none is free. Raises Unusable.
    """
    if host not in LOOPBACK:
        return [one for one in (listen(host, *wanted),) if one is not None]
    for number in _tried(wanted):
        if (first := _opened("127.0.0.1", number)) is None:
            continue
        try:
            second = _opened("::1", first.getsockname()[1])
        except Unusable:
            # This system has no such address, so no other program has it either.
            return [first]
        if second is not None:
            return [first, second]
        first.close()
    return []


def _tried(wanted: Sequence[int]) -> Iterator[int]:
    yield from wanted
    # The system chooses another one each time.
    yield from [0] * _TRIES if not wanted[-1] else range(wanted[-1] + 1, min(wanted[-1] + _TRIES, 65536))


def _opened(host: str, port: int) -> socket.socket | None:
    """None where the port is in use."""
    listener: socket.socket | None = None
    try:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it. Without it, the second part of an answer waits 40 ms for the client's system.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as fault:
        if listener is not None:
            listener.close()
        if fault.errno == errno.EADDRINUSE:
            return None
        raise Unusable(port, fault.strerror or str(fault)) from fault
    return listener
