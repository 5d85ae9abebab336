"""Opens a listening socket on a wanted port, or on the next free one."""

from __future__ import annotations

import errno
import socket

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
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in [*wanted, *range(wanted[-1] + 1, min(wanted[-1] + _TRIES, 65536))]:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it. Without it, the second part of an answer waits 40 ms for the client's system.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind((host, number))
            listener.listen(_BACKLOG)
        except OSError as fault:
            listener.close()
            if fault.errno == errno.EADDRINUSE:
                continue
            raise Unusable(number, fault.strerror or str(fault)) from fault
        return listener
    return None
