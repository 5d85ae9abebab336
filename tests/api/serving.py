"""The real server in front of a test's board, on a unix socket and a port of its own."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from legion import __version__
from legion.api.app import make_app
from legion.client.http import DaemonAddress
from legion.client.legion import Legion
from tests.support.board import Board

TOKEN = "a-token-for-tests"


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@dataclass(frozen=True)
class Served:
    board: Board
    port: int
    socket: Path

    @property
    def over_socket(self) -> Legion:
        return Legion(DaemonAddress(socket=str(self.socket), token=TOKEN))

    @property
    def over_tcp(self) -> Legion:
        return Legion(DaemonAddress(port=self.port, token=TOKEN))


@contextmanager
def serving(folder: Path, *, heartbeat: float = 15.0) -> Iterator[Served]:
    """Serves the folder's board until the block ends, and writes the files by which clients find it."""
    board = Board(folder)
    data = board.data
    tcp = socket.create_server(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    unix.bind(str(data.socket))
    unix.listen()
    port = tcp.getsockname()[1]
    data.token.write_text(f"{TOKEN}\n")
    record = {"pid": 4242, "url": f"http://127.0.0.1:{port}", "socket": str(data.socket), "version": __version__}
    data.daemon_record.write_text(json.dumps(record))
    app = make_app(board.callers, token=TOKEN, hosts=("127.0.0.1", "localhost", "::1"), heartbeat=heartbeat)
    server = _Server(uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [tcp, unix]}, daemon=True)
    thread.start()
    assert server.up.wait(20)
    try:
        yield Served(board, port, data.socket)
    finally:
        board.news.close()
        server.should_exit = True
        thread.join(20)
        tcp.close()
        unix.close()
        data.socket.unlink(missing_ok=True)
        board.close()
