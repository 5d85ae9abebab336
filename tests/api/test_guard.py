"""Who may ask at all."""

from __future__ import annotations

import http.client
import json
import socket

import pytest

from tests.api.serving import TOKEN, Served

BEARER = {"Authorization": f"Bearer {TOKEN}"}


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
    assert served.service.asked == []


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:6666", "127.0.0.1.evil.example", "", "localhost@evil.example"]
)
def test_a_foreign_host_name_is_misdirected(served: Served, host):
    answer, content = ask(served, "/v1/status", {**BEARER, "Host": host})
    assert answer.status == 421
    assert content["code"] == "not_allowed"
    assert served.service.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:7000", "LOCALHOST", "[::1]:6666"])
def test_our_own_names_are_answered_on_any_port(served: Served, host):
    answer, _ = ask(served, "/v1/status", {**BEARER, "Host": host})
    assert answer.status == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1", "http://127.0.0.1:6666.evil"],
)
def test_a_foreign_origin_is_refused_even_with_the_token(served: Served, method, origin):
    answer, content = ask(served, "/v1/status", {**BEARER, "Host": "127.0.0.1:6666", "Origin": origin}, method)
    assert answer.status == 403
    assert "other sites" in content["message"]
    assert served.service.asked == []


def test_the_pages_own_origin_is_let_through(served: Served):
    answer, _ = ask(served, "/v1/status", {**BEARER, "Host": "localhost:6666", "Origin": "http://localhost:6666"})
    assert answer.status == 200


def test_there_is_no_cors(served: Served):
    headers = {"Host": "localhost:6666", "Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
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
            f"POST /v1/tickets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
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
    assert served.service.asked == []


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
