"""A provider made of plain sockets: a test defines its answers and reads its requests byte by byte."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

PATIENCE = 60.0


def event(kind: str, **facts: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **facts})}\n\n".encode()


def start(model: str = "claude-sonnet-4-5", **usage: int) -> bytes:
    return event("message_start", message={"id": "msg_1", "model": model, "usage": usage})


def text(content: str) -> bytes:
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": content})


def delta(**usage: int) -> bytes:
    return event("message_delta", delta={"stop_reason": "end_turn"}, usage=usage)


STOP = event("message_stop")


@dataclass
class Exchange:
    """One request and the means to answer it."""

    connection: socket.socket
    head: bytes
    body: bytes

    @property
    def line(self) -> str:
        return self.head.split(b"\r\n", 1)[0].decode()

    @property
    def headers(self) -> list[tuple[str, str]]:
        lines = self.head.decode().split("\r\n")[1:]
        return [(name, value) for name, _, value in (line.partition(": ") for line in lines)]

    def header(self, name: str) -> str | None:
        return next((value for one, value in self.headers if one.lower() == name.lower()), None)

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        """A whole answer of known length."""
        fields = {
            "content-type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.send(f"HTTP/1.1 {status} Said\r\n{lines}content-length: {len(body)}\r\n\r\n".encode() + body)

    def begin(self, *pieces: bytes) -> None:
        """The head of a stream, and its first pieces."""
        self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in pieces:
            self.piece(piece)

    def piece(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def finish(self) -> None:
        self.send(b"0\r\n\r\n")

    def drop(self) -> None:
        """Break the connection, as a crash does."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def wait_until_closed(self) -> bool:
        self.connection.settimeout(PATIENCE)
        with contextlib.suppress(ConnectionError):
            return self.connection.recv(1) == b""
        return True


Script = Callable[[Exchange], None]
WHOLE = start(input_tokens=10, output_tokens=1) + text("hello") + delta(output_tokens=5) + STOP


def whole(exchange: Exchange) -> None:
    """The default answer."""
    exchange.begin(WHOLE)
    exchange.finish()


@dataclass
class Upstream:
    script: Script = whole
    seen: list[Exchange] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            connection.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while True:
                while b"\r\n\r\n" not in rest:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    rest += piece
                head, _, rest = rest.partition(b"\r\n\r\n")
                exchange = Exchange(connection, head, b"")
                length = int(exchange.header("content-length") or 0)
                while len(rest) < length:
                    rest += connection.recv(65536)
                exchange.body, rest = rest[:length], rest[length:]
                self.seen.append(exchange)
                self.script(exchange)
