"""The page under one more address: opened, encrypted, recorded, closed."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.api.app import make_app
from legion.daemon.page_server import PageServer
from legion.domain.errors import BadInput
from legion.wire.web import OfferDevice, OpenWeb
from tests.support.board import Board

LOCAL = "http://127.0.0.1:6670"
HOST = "127.0.0.2"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    made = Board(tmp_path_factory.mktemp("board"))
    yield made
    made.close()


@pytest.fixture
def server(board: Board) -> Iterator[PageServer]:
    made = new_server(board)
    yield made
    made.close()


def new_server(board: Board) -> PageServer:
    return PageServer(
        board.data,
        lambda hosts, behind: make_app(board.callers, token=None, hosts=hosts, behind=behind),
        local=LOCAL,
    )


def get(url: str, path: str, headers: dict[str, str] | None = None, trusted: Path | None = None, body: str = "") -> int:
    scheme, _, place = url.partition("://")
    if scheme == "https":
        context = ssl.create_default_context(cafile=str(trusted))
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(place, timeout=20, context=context)
    else:
        connection = http.client.HTTPConnection(place, timeout=20)
    try:
        connection.request("POST" if body else "GET", path, body or None, headers or {})
        return connection.getresponse().status
    finally:
        connection.close()


def test_it_serves_the_page_and_lets_a_device_in_but_knows_no_token(board: Board, server: PageServer):
    (url,) = server.open(OpenWeb(host=HOST)).more
    assert url.startswith(f"http://{HOST}:")
    assert get(url, "/") == 200
    board.data.token.write_text("the-person\n")
    assert get(url, "/v1/status", {"Authorization": "Bearer the-person"}) == 401
    assert get(url, "/v1/status", {"Authorization": "Bearer "}) == 401
    assert get(url, "/v1/status", {"Authorization": f"Bearer {board.token_of_agent()[1]}"}) == 401
    assert get(url, "/", {"Host": "127.0.0.1"}) == 421
    code = board.service.offer_device(OfferDevice()).code
    assert get(url, "/web/login", {"Legion-Page": "1"}, body=json.dumps({"code": code})) == 200


def test_it_comes_back_with_the_next_daemon_until_it_is_closed(board: Board, server: PageServer):
    opened = server.open(OpenWeb(host=HOST))
    server.stop()
    after_restart = new_server(board)
    after_restart.reopen()
    assert after_restart.addresses() == opened
    assert get(opened.more[0], "/") == 200
    after_restart.close()
    with pytest.raises(ConnectionError):
        get(opened.more[0], "/")
    third = new_server(board)
    third.reopen()
    assert third.addresses().more == []


@pytest.mark.parametrize("record", ["", "{", "[]", '{"host": "203.0.113.1", "port": 1}', '{"host": 3}'])
def test_a_record_that_cannot_be_served_stops_no_daemon(board: Board, record: str):
    (board.data.root / "web.json").write_text(record)
    server = new_server(board)
    server.reopen()
    assert server.addresses().more == []
    server.close()


def test_with_tls_a_browser_that_trusts_the_authority_is_satisfied(board: Board, server: PageServer):
    opened = server.open(OpenWeb(host=HOST, tls=True))
    authority = board.data.root / "web" / "authority.pem"
    assert get(opened.more[0], "/", trusted=authority) == 200
    assert get(opened.more[0], "/web/authority.pem", trusted=authority) == 200
    assert opened.fingerprint.count(":") == 31
    assert {path.stat().st_mode & 0o777 for path in authority.parent.glob("*.key")} == {0o600}
    assert server.open(OpenWeb(host=HOST, tls=True)).fingerprint == opened.fingerprint
    other = server.open(OpenWeb(host="127.0.0.3", tls=True))
    assert get(other.more[0], "/", trusted=authority) == 200


def test_behind_a_proxy_it_answers_under_that_name_only(server: PageServer):
    opened = server.open(OpenWeb(host=HOST, behind="box.example.test"))
    assert opened.more == ["https://box.example.test"]
    assert get(opened.proxied, "/", {"Host": "box.example.test"}) == 200
    assert get(opened.proxied, "/") == 421


@pytest.mark.parametrize(
    "wanted", [OpenWeb(host="0.0.0.0"), OpenWeb(host="::"), OpenWeb(host=HOST, behind="a.test", tls=True)]
)
def test_addresses_that_no_browser_could_use_are_refused(server: PageServer, wanted: OpenWeb):
    with pytest.raises(BadInput):
        server.open(wanted)
