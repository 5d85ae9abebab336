"""Who may ask at all."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass

import pytest

from legion.client.http import DaemonAddress
from legion.client.legion import Legion
from legion.wire.errors import NotAllowed
from legion.wire.operations import OPERATIONS
from legion.wire.table import OpenTo
from tests.api.serving import TOKEN, Served
from tests.support.attacks import Attacker, Door, attack

BEARER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True)
class Agent:
    """An agent with its token."""

    id: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@pytest.fixture
def agent(served: Served) -> Agent:
    return Agent(*served.board.token_of_agent())


@pytest.fixture
def of_a_ticket(served: Served) -> Agent:
    served.board.put(12, state="working")
    return Agent("ticket-12", served.board.token_of_ticket(12))


def refused(served: Served) -> list[tuple[str, str]]:
    """What agents tried in vain, as the events record it."""
    found = served.board.service.events(0, 10_000)
    return [(str(one.data["caller"]), str(one.data["asked"])) for one in found if one.kind == "agent.refused"]


def ask(served: Served, path: str, headers: dict[str, str], method: str = "GET", body: bytes | None = None):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def test_health_needs_no_token(served: Served):
    answer, content = ask(served, "/health", {})
    assert (answer.status, content) == (200, {"status": "healthy"})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer \xff\xfe"},
        {"Cookie": f"token={TOKEN}"},
    ],
)
@pytest.mark.parametrize(
    "path", ["/v1/status", "/v1/openapi.json", "/v1/events", "/nowhere", f"/v1/status?token={TOKEN}"]
)
def test_without_the_token_nothing_is_answered(served: Served, path, headers):
    answer, content = ask(served, path, headers)
    assert answer.status == 401
    assert answer.getheader("WWW-Authenticate") == "Bearer"
    assert (content["schema"], content["code"], content["exit_code"]) == ("legion.problem/1", "not_allowed", 4)
    assert served.board.callers.asked == []


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:6666", "127.0.0.1.evil.example", "", "localhost@evil.example"]
)
def test_a_foreign_host_name_is_misdirected(served: Served, host):
    answer, content = ask(served, "/v1/status", {**BEARER, "Host": host})
    assert answer.status == 421
    assert content["code"] == "not_allowed"
    assert served.board.callers.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_our_own_names_are_answered_on_the_port_that_we_listen_on(served: Served, host):
    answer, _ = ask(served, "/v1/status", {**BEARER, "Host": f"{host}:{served.port}"})
    assert answer.status == 200
    for other in ("", ":", ":1", f":{served.port + 1}", f":0{served.port}", f":{served.port}:1"):
        assert ask(served, "/v1/status", {**BEARER, "Host": f"{host}{other}"})[0].status == 421, other


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1", "http://127.0.0.1:{port}.evil"],
)
def test_a_foreign_origin_is_refused_even_with_the_token(served: Served, method, origin):
    answer, content = ask(served, "/v1/status", {**BEARER, "Origin": origin.format(port=served.port)}, method)
    assert answer.status == 403
    assert "other sites" in content["message"]
    assert served.board.callers.asked == []


def test_a_request_that_a_browser_calls_foreign_is_refused_even_with_the_token(served: Served):
    for site, status in (("cross-site", 403), ("same-site", 403), ("none", 200), ("same-origin", 200)):
        assert ask(served, "/v1/status", {**BEARER, "Sec-Fetch-Site": site})[0].status == status


def test_the_pages_own_origin_is_let_through(served: Served):
    own = f"localhost:{served.port}"
    answer, _ = ask(served, "/v1/status", {**BEARER, "Host": own, "Origin": f"http://{own}"})
    assert answer.status == 200


def test_there_is_no_cors(served: Served):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    answer, _ = ask(served, "/v1/status", headers, "OPTIONS")
    assert answer.status == 403
    assert not [name for name, _ in answer.getheaders() if name.lower().startswith("access-control")]


def test_every_answer_says_its_version_and_forbids_caching(served: Served):
    for headers in ({}, BEARER):
        answer, _ = ask(served, "/v1/status", headers)
        assert answer.getheader("Cache-Control") == "no-store"
        assert answer.getheader("Legion-Version")
        assert answer.getheader("X-Content-Type-Options") == "nosniff"
        assert "default-src 'none'" in str(answer.getheader("Content-Security-Policy"))


def test_a_declared_body_that_is_too_big_is_refused_unread(served: Served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as line:
        line.sendall(
            f"POST /v1/tickets HTTP/1.1\r\nHost: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Content-Length: 99999999\r\n\r\n".encode()
        )
        assert line.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_grows_too_big_is_refused(served: Served):
    def endless():
        for _ in range(40):
            yield b" " * 2**20

    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    try:
        connection.request("POST", "/v1/tickets", endless(), BEARER, encode_chunked=True)
    except (BrokenPipeError, ConnectionResetError):
        pass
    else:
        answer = connection.getresponse()
        assert answer.status == 413
        assert "32 MB" in json.loads(answer.read())["message"]
    finally:
        connection.close()
    assert served.board.callers.asked == []


def test_a_websocket_is_turned_away(served: Served):
    headers = {
        **BEARER,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Version": "13",
    }
    answer, _ = ask(served, "/v1/status", headers)
    assert answer.status != 101


def test_the_token_alone_says_who_calls(served: Served, agent: Agent):
    for headers, caller in ((BEARER, "root"), (agent.headers, agent.id)):
        answer, content = ask(served, "/v1/status", headers)
        assert (answer.status, served.board.callers.names.pop(), content["seat"]["you"]) == (200, caller, caller)


@pytest.mark.parametrize("name", ["root", "ticket-12", "another-agent", " ", "{id}x"])
def test_an_agent_that_calls_itself_something_else_is_refused_and_written_down(served: Served, agent: Agent, name):
    answer, content = ask(served, "/v1/status", {**agent.headers, "Legion-Session": name.format(id=agent.id)})
    assert (answer.status, content["code"]) == (403, "not_allowed")
    assert "LEGION_SESSION_ID" in content["message"]
    assert refused(served) == [(agent.id, "GET /v1/status")]
    assert served.board.callers.asked == []


def test_a_session_id_proves_nothing_without_a_token(served: Served, agent: Agent):
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        answer, _ = ask(served, "/v1/status", {**headers, "Legion-Session": agent.id})
        assert answer.status == 401
    answer, _ = ask(served, "/v1/status", {**BEARER, "Legion-Session": agent.id})
    assert answer.status == 403
    for headers, name in ((BEARER, "root"), (agent.headers, agent.id)):
        assert ask(served, "/v1/status", {**headers, "Legion-Session": name})[0].status == 200


CLOSED = [
    ("POST", "/v1/shutdown"),
    ("GET", "/v1/config"),
    ("GET", "/v1/doctor"),
    ("POST", "/v1/projects"),
    ("DELETE", "/v1/projects"),
    ("POST", "/v1/project/trust"),
    ("POST", "/v1/project/collect"),
    ("POST", "/v1/project/stop"),
    ("GET", "/v1/providers"),
    ("POST", "/v1/providers"),
    ("GET", "/v1/events"),
    ("GET", "/v1/openapi.json"),
    ("POST", "/v1/tickets/1/drop"),
    ("POST", "/v1/tickets/1/tell"),
]


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_what_is_not_listed_is_closed_to_agents(served: Served, agent: Agent, of_a_ticket: Agent, method, path):
    for one in (agent, of_a_ticket):
        answer, content = ask(served, path, one.headers, method, b"{}" if method == "POST" else None)
        assert answer.status == 403, content
        assert "not open to agents" in content["message"]
    assert refused(served) == [(agent.id, f"{method} {path}"), ("ticket-12", f"{method} {path}")]
    assert served.board.callers.asked == []


def test_the_agent_of_a_ticket_may_not_even_look_at_the_board(served: Served, of_a_ticket: Agent):
    answer, _ = ask(served, "/v1/status", of_a_ticket.headers)
    assert answer.status == 403


@attack(Attacker.AGENT, Door.BOUNDS)
def test_numbers_and_names_that_an_agent_makes_up_are_recorded_once(served: Served, agent: Agent):
    for made_up in ("1", "2", "999", "%31", "1x", "%C3%A9"):
        assert ask(served, f"/v1/tickets/{made_up}/drop", agent.headers, "POST", b"{}")[0].status in (403, 404)
    assert len(refused(served)) == 1
    assert ask(served, "/v1/tickets/1/tell", agent.headers, "POST", b"{}")[0].status == 403
    assert len(refused(served)) == 2


def test_a_client_says_who_it_believes_to_be(served: Served, agent: Agent):
    assert Legion(DaemonAddress(port=served.port, token=agent.token, session=agent.id)).status(None).tickets == []
    with pytest.raises(NotAllowed, match="cannot be used as"):
        Legion(DaemonAddress(port=served.port, token=agent.token, session="root")).status(None)


def test_a_row_that_is_not_open_to_agents_is_closed_behind_the_guard_too(served: Served, agent: Agent):
    acting = served.board.callers.acting(served.board.callers.known(agent.token))
    closed = [row for row in OPERATIONS.values() if OpenTo.AGENTS not in row.open_to]
    assert len(closed) > 30
    for row in closed:
        with pytest.raises(NotAllowed, match="not open to agents"):
            acting.call(row, {})
