"""The page under one more address: opened, encrypted, recorded, closed."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from legion.api.app import make_app
from legion.api.guard import Guard
from legion.daemon import listener
from legion.daemon.page_server import PageServer
from legion.domain.errors import BadInput, LegionError
from legion.wire.web import OfferDevice, OpenWeb
from tests.support.attacks import Attacker, Door, attack
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
        board.data, lambda hosts, behind: make_app(board.callers, token=None, hosts=hosts, behind=behind), local=LOCAL
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


@attack(Attacker.LOCAL_USER, Door.ORIGIN)
@pytest.mark.parametrize(("behind", "scheme"), [("", "http"), ("box.example.test", "https")], ids=["direct", "proxied"])
def test_only_a_proxy_that_was_named_can_call_a_connection_encrypted(board: Board, behind: str, scheme: str):
    schemes: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        schemes.append(scope["scheme"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    server = PageServer(board.data, lambda hosts, behind: cast(Guard, app), local=LOCAL)
    opened = server.open(OpenWeb(host=HOST, behind=behind))
    try:
        assert get(opened.proxied or opened.more[0], "/", {"X-Forwarded-Proto": "https"}) == 200
    finally:
        server.close()
    assert schemes == [scheme]
    assert not listener.config(cast(Guard, app)).proxy_headers, "the daemon's own ports have no proxy"


@attack(Attacker.LOCAL_USER, Door.ORIGIN)
def test_a_proxy_that_forwards_to_a_port_of_another_program_is_given_up(board: Board, server: PageServer):
    opened = server.open(OpenWeb(host=HOST, behind="Box.example.test"))
    assert server.proxy == "Box.example.test"
    server.stop()
    with socket.create_server(("127.0.0.1", int(opened.proxied.rpartition(":")[2]))):
        after_restart = new_server(board)
        after_restart.reopen()
        assert (after_restart.addresses().more, after_restart.proxy) == ([], "")
        assert after_restart.lost_proxy == "Box.example.test"
        after_restart.stop()


@pytest.mark.parametrize("new", ["taken", "elsewhere"])
def test_what_is_open_stays_open_where_a_new_address_cannot_be_served(server: PageServer, new: str):
    opened = server.open(OpenWeb(host=HOST))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        behind = OpenWeb(host="127.0.0.1", port=taken.getsockname()[1], behind="box.example.test")
        wanted = behind if new == "taken" else OpenWeb(host="192.0.2.1")
        with pytest.raises(LegionError):
            server.open(wanted)
    assert server.addresses() == opened
    assert get(opened.more[0], "/") == 200


def let_in(board: Board, *hosts: str) -> None:
    for host in hosts:
        code = board.service.offer_device(OfferDevice()).code
        board.callers.accept_device(code, name="", host=host)


def still_in(board: Board) -> set[str]:
    return {one.host for one in board.service.devices().devices}


@attack(Attacker.AGENT, Door.ORIGIN)
def test_a_start_shuts_out_the_browsers_whose_port_others_may_have_had(board: Board):
    away, proxy = "192.168.1.5:6680", "localhost:8443"
    at_home = {"127.0.0.1:6670", "localhost:6670", "[::1]:6670"}
    board.reset()
    let_in(board, *at_home, "127.0.0.1:6671", away, proxy)
    board.callers.end_devices_elsewhere([6670, 6681], proxy="LocalHost:8443")
    assert still_in(board) == {*at_home, away, proxy}, "a proxy on this machine has a port of its own"
    board.callers.end_devices_elsewhere([6670], lost_proxy=proxy)
    assert still_in(board) == {*at_home, away}
    let_in(board, proxy)
    board.put(1, state="working")
    board.run(1, ended=False)
    board.callers.end_devices_elsewhere([6670], proxy=proxy)
    assert still_in(board) == {away}, "an agent that worked alone could listen at any port of this machine"


@pytest.mark.parametrize(
    "wanted", [OpenWeb(host="0.0.0.0"), OpenWeb(host="::"), OpenWeb(host=HOST, behind="a.test", tls=True)]
)
def test_addresses_that_no_browser_could_use_are_refused(server: PageServer, wanted: OpenWeb):
    with pytest.raises(BadInput):
        server.open(wanted)
