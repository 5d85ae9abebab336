"""Connects to a provider's machine to learn whether it is there. Sends no request, so it costs nothing."""

from __future__ import annotations

import queue
import socket
import threading
from urllib.parse import urlsplit

_PATIENCE = 3.0
"""Seconds, for the name and the connection together."""
_PORTS = {"http": 80, "https": 443}


def unreachable(url: str, *, patience: float = _PATIENCE) -> str:
    """Why no connection is possible; empty where one is."""
    place = urlsplit(url)
    host, port = place.hostname or "", place.port or _PORTS.get(place.scheme, 443)
    found: queue.SimpleQueue[str] = queue.SimpleQueue()

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=patience).close()
            found.put("")
        except OSError as refused:
            found.put(refused.strerror or str(refused))

    # Nothing bounds the time that the system takes to look up a name.
    threading.Thread(target=connect, name="reachability", daemon=True).start()
    try:
        return found.get(timeout=patience)
    except queue.Empty:
        return f"no connection within {patience:g} s"
