"""What arrives without login is small, in time, and not too much at once."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from legion.api import guard
from legion.api.app import make_app
from legion.api.bodies import BodyLimits
from legion.daemon.listener import BoundedHttp
from legion.daemon.page_server import PageServer
from legion.domain.errors import NotAllowed
from legion.wire.web import OpenWeb
from tests.support.attacks import Attacker, Door, attack
from tests.support.board import Board
from tests.web.test_page_server import get

HOST = "127.0.0.4"
PATIENCE = 30


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    made = Board(tmp_path_factory.mktemp("bounds"))
    yield made
    made.close()


class ShortHttp(BoundedHttp):
    """Its times can be waited for."""

    head_seconds = 0.5
    most_waiting = 20


@pytest.fixture
def pages(board: Board) -> Iterator[PageServer]:
    def app(hosts: tuple[str, ...], behind: str) -> guard.Guard:
        made = make_app(board.callers, token=None, hosts=hosts, behind=behind)
        made.limits = BodyLimits(seconds_without_login=0.5)
        return made

    made = PageServer(board.data, app, local="http://127.0.0.1:6670", http=ShortHttp)
    yield made
    made.close()


@pytest.fixture
def port(pages: PageServer) -> int:
    (url,) = pages.open(OpenWeb(host=HOST)).more
    return int(url.rpartition(":")[2])


def connected(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=PATIENCE)


@attack(Attacker.NETWORK, Door.BOUNDS)
@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "], ids=repr)
def test_half_a_head_is_not_waited_for(port: int, sent: bytes):
    with connected(port) as line:
        line.sendall(sent)
        with suppress(ConnectionResetError):
            assert line.recv(100) == b""


@attack(Attacker.NETWORK, Door.BOUNDS)
def test_half_a_second_head_is_not_waited_for(port: int):
    with connected(port) as line:
        line.sendall(f"GET /health HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\nGET /h".encode())
        received = b""
        with suppress(ConnectionResetError):
            while part := line.recv(4096):
                received += part
        assert received.count(b"HTTP/1.1 200") == 1


@attack(Attacker.NETWORK, Door.BOUNDS)
def test_a_drip_of_bytes_buys_no_time(port: int):
    deadline = time.monotonic() + PATIENCE
    with connected(port) as line, suppress(ConnectionError):
        line.settimeout(0.05)
        while time.monotonic() < deadline:
            line.sendall(b"X")
            with suppress(TimeoutError):
                assert line.recv(1) == b""
                break
    assert time.monotonic() < deadline


@attack(Attacker.NETWORK, Door.BOUNDS)
def test_many_connections_without_a_head_keep_no_others_out(port: int):
    with ExitStack() as open_ones:
        lines = [open_ones.enter_context(connected(port)) for _ in range(100)]
        assert get(f"http://{HOST}:{port}", "/") == 200
        assert lines


@attack(Attacker.NETWORK, Door.BOUNDS)
@pytest.mark.parametrize("path", ["/web/login", "/health", "/nowhere", "/web/x"])
def test_a_large_body_without_login_is_refused_unread(port: int, path: str):
    with connected(port) as line:
        line.sendall(f"POST {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Length: 33554432\r\n\r\n".encode())
        assert line.recv(100).split()[1] in (b"413", b"401")


@attack(Attacker.NETWORK, Door.BOUNDS)
def test_a_body_without_login_that_grows_or_stays_away_is_refused(port: int):
    head = f"POST /web/login HTTP/1.1\r\nHost: {HOST}:{port}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with connected(port) as line:
        line.sendall(head + b"5000\r\n" + b"x" * 0x5000 + b"\r\n")
        assert line.recv(100).split()[1] == b"413"
    with connected(port) as line:
        line.sendall(head + b"5\r\nhello\r\n")
        assert line.recv(100).split()[1] == b"408"


def test_an_address_that_cannot_be_opened_leaves_the_open_one(pages: PageServer, port: int):
    before = pages.addresses()
    with pytest.raises(NotAllowed):
        pages.open(OpenWeb(host="203.0.113.1"))
    assert pages.addresses() == before
    assert get(f"http://{HOST}:{port}", "/") == 200


def test_a_folder_that_cannot_be_looked_at_is_in_no_project(board: Board, tmp_path: Path):
    for cwd in (f"/{'a' * 300}", str(tmp_path), "/proc/self/fd/999/x"):
        assert board.service.status(cwd).project is None
