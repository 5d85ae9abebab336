"""Asks a gateway, a relay or a provider as an agent program does, over plain sockets, and takes the time."""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import time
from dataclasses import dataclass

_TOOL = {"type": "object", "properties": {"path": {"type": "string", "description": "where it is " * 20}}}
_TURN = (
    {"role": "user", "content": [{"type": "text", "text": "a word or two " * 100}]},
    {"role": "assistant", "content": [{"type": "text", "text": "some words of it " * 100}]},
)
_BODY = json.dumps(
    {
        "model": "claude-sonnet-4-5",
        "stream": True,
        "max_tokens": 32000,
        "system": [{"type": "text", "text": "Be good. " * 500}],
        "tools": [{"name": f"tool{n}", "description": "does it " * 40, "input_schema": _TOOL} for n in range(16)],
        "messages": [*(_TURN * 20), _TURN[0]],
    }
).encode()
"""About 80 KB, as an agent program sends it in the middle of a job."""
_END = b"0\r\n\r\n"
AT_ONCE = 32


@dataclass(frozen=True, kw_only=True)
class Times:
    """Of many requests, one after the other, in seconds."""

    whole: tuple[float, ...]
    first: tuple[float, ...]
    """Until the first byte of the answer's body."""

    @property
    def p50(self) -> float:
        return statistics.median(self.whole)

    @property
    def p99(self) -> float:
        return sorted(self.whole)[int(len(self.whole) * 0.99)]


def one_by_one(port: int, token: str, number: int) -> Times:
    """On one connection."""
    connection, whole, first = connect(port), [], []
    asked = request(token)
    for _ in range(number):
        began = time.perf_counter()
        connection.sendall(asked)
        first.append(_first_byte(connection) - began)
        whole.append(time.perf_counter() - began)
    connection.close()
    return Times(whole=tuple(whole), first=tuple(first))


def at_once(port: int, token: str, number: int) -> float:
    """Seconds for so many requests, 32 at a time."""
    connections = [connect(port) for _ in range(AT_ONCE)]
    began = time.perf_counter()
    asked = request(token)
    for connection in connections:
        connection.sendall(asked)
    drain(connections, number // AT_ONCE, asked)
    return time.perf_counter() - began


def drain(connections: list[socket.socket], times: int, request: bytes = b"") -> None:
    """Read so many answers from each, asking again after all but the last."""
    left, tails = dict.fromkeys(connections, times), dict.fromkeys(connections, b"")
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
        while left:
            for key, _ in selector.select():
                connection = key.data
                piece = connection.recv(1 << 18)
                assert piece, "the connection broke"
                tails[connection] = (tails[connection] + piece)[-len(_END) :]
                if tails[connection] != _END:
                    continue
                tails[connection] = b""
                left[connection] -= 1
                if left[connection]:
                    connection.sendall(request)
                else:
                    del left[connection]
                    selector.unregister(connection)
                    if times > 1:
                        connection.close()


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=120)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def request(token: str, path: str = "/v1/messages?beta=true") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\nanthropic-version: 2023-06-01\r\ncontent-length: {len(_BODY)}\r\n\r\n"
    )
    return head.encode() + _BODY


def _first_byte(connection: socket.socket) -> float:
    """Reads the whole answer, and says when its body began."""
    said, began = b"", 0.0
    while not said.endswith(_END):
        piece = connection.recv(1 << 18)
        assert piece, "the connection broke"
        said += piece
        head, mark, body = said.partition(b"\r\n\r\n")
        if not began and mark and body:
            assert head.startswith(b"HTTP/1.1 200"), said[:300]
            began = time.perf_counter()
    return began
