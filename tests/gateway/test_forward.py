"""Requests and answers are forwarded unchanged and without delay: bytes, headers, errors."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

from legion.gateway.access.provider import KeyFrom, KeySource, KeyStyle
from tests.gateway.gateways import BODY, running
from tests.gateway.test_limits import UNIFIED
from tests.gateway.upstream import STOP, delta, start, text

ODD_BODY = (
    b'{ "model" :\t"claude-sonnet-4-5",\n "unknown_field": {"b":1,"a":[1.0, 2e3]}, "messages":[{"role":"assistant",'
    b'"content":[{"type":"thinking","thinking":"hm","signature":"EqQBCgIYAhIM+/=="},'
    b'{"type":"text","text":"caf\xc3\xa9 \\u00e9 \\/","cache_control":{"type":"ephemeral"}}]}] }  \n'
)


def test_a_request_reaches_the_provider_byte_for_byte(gateway, upstream):
    _, token = gateway.grant()
    flags = "context-1m-2025-08-07,interleaved-thinking-2025-05-14"
    gateway.ask(
        token,
        ODD_BODY,
        path="/v1/messages?beta=true&x=%41%2f",
        anthropic_beta=flags,
        anthropic_version="2023-06-01",
        X_Claude_Code_Session_Id="5f0c",
        Content_Type="application/json; charset=utf-8",
        User_Agent="claude-cli/2",
        Accept_Encoding="gzip, br",
    )
    (got,) = upstream.seen
    assert got.line == "POST /v1/messages?beta=true&x=%41%2f HTTP/1.1"
    assert got.body == ODD_BODY
    assert sorted((name.lower(), value) for name, value in got.headers) == sorted(
        [
            ("host", upstream.url.removeprefix("http://")),
            ("anthropic-beta", flags),
            ("anthropic-version", "2023-06-01"),
            ("x-claude-code-session-id", "5f0c"),
            ("content-type", "application/json; charset=utf-8"),
            ("user-agent", "claude-cli/2"),
            ("accept-encoding", "identity"),
            ("content-length", str(len(ODD_BODY))),
        ]
    )


def test_an_answer_reaches_the_caller_byte_for_byte(gateway, upstream):
    odd = (
        b': a remark\r\nevent:ping\ndata:{"type": "ping"}\n\ndata: {"type":"x","signature":"Eq/+=="}\n\n\xff\xfe' + STOP
    )

    def script(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nRequest-Id: req_1\r\n")
        exchange.send(b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(odd), 7):
            exchange.piece(odd[at : at + 7])
        exchange.finish()

    upstream.script = script
    _, token = gateway.grant()
    with gateway.asking(token) as answer:
        assert answer.read() == odd
        headers = {name.lower() for name, _ in answer.getheaders()}
        assert answer.headers.get_all("set-cookie") == ["a=1", "b=2"]
        assert answer.headers["request-id"] == "req_1"
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers == {"content-type", "request-id", "set-cookie", "transfer-encoding", "date", "server"}


def test_long_headers_pass_both_ways(gateway, upstream):
    long = "x" * 30_000
    upstream.script = lambda exchange: exchange.reply(200, b"{}", x_long=long)
    _, token = gateway.grant()
    with gateway.asking(token, anthropic_beta=long) as answer:
        assert answer.headers["x-long"] == long
    assert upstream.seen[0].header("anthropic-beta") == long


def test_cookies_of_one_caller_reach_no_other(gateway, upstream):
    # A jar would keep them for names, not for addresses.
    gateway.provide(upstream.url.replace("127.0.0.1", "localhost"))
    upstream.script = lambda exchange: exchange.reply(200, b"{}", set_cookie="secret=1")
    for _ in range(2):
        gateway.ask(gateway.grant()[1])
    assert [exchange.header("cookie") for exchange in upstream.seen] == [None, None]


def test_a_whole_answer_keeps_its_length(gateway, upstream):
    message = b'{"type":"message", "model":"claude-sonnet-4-5","usage":{"input_tokens":3,"output_tokens":4}}'
    upstream.script = lambda exchange: exchange.reply(200, message)
    run, token = gateway.grant()
    with gateway.asking(token) as answer:
        assert answer.headers["content-length"] == str(len(message))
        assert answer.read() == message
    entry = gateway.entry(run)
    assert (entry.input, entry.output, entry.status, entry.cut, entry.error) == (3, 4, 200, False, "")


def test_the_first_event_arrives_while_the_second_is_held_back(gateway, upstream):
    seen_by_caller = threading.Event()
    first = start(input_tokens=1)

    def script(exchange):
        exchange.begin(first)
        assert seen_by_caller.wait(60)
        exchange.piece(STOP)
        exchange.finish()

    upstream.script = script
    _, token = gateway.grant()
    with gateway.asking(token) as answer:
        assert answer.read1(65536) == first
        seen_by_caller.set()
        assert answer.read() == STOP


def test_a_large_request_and_a_large_answer_pass(gateway, upstream):
    body = b'{"model":"claude-sonnet-4-5","image":"' + b"A" * 20_000_000 + b'"}'
    pieces = [text("w" * 300_000) for _ in range(20)]

    def script(exchange):
        exchange.begin(start(input_tokens=7), *pieces, delta(output_tokens=9), STOP)
        exchange.finish()

    upstream.script = script
    run, token = gateway.grant()
    status, reply = gateway.ask(token, body)
    assert status == 200
    assert upstream.seen[0].body == body
    assert reply.count(b"text_delta") == 20
    entry = gateway.entry(run)
    assert (entry.input, entry.output, entry.cut) == (7, 9, False)


def test_what_is_too_large_is_refused(gateway):
    _, token = gateway.grant()
    body = b'{"model":"claude-sonnet-4-5","image":"' + b"A" * (64 << 20) + b'"}'
    assert gateway.refused(token, body)[:2] == (413, "request_too_large")


def test_a_caller_that_waits_for_leave_to_send_gets_it(gateway):
    _, token = gateway.grant()
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=60)
    connection.putrequest("POST", "/v1/messages")
    for name, value in {"authorization": f"Bearer {token}", "expect": "100-continue"}.items():
        connection.putheader(name, value)
    connection.putheader("content-length", str(len(BODY)))
    connection.endheaders()
    assert connection.sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.send(BODY)
    answer = connection.getresponse()
    assert (answer.status, b"message_stop" in answer.read()) == (200, True)
    connection.close()


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_an_error_of_the_provider_is_passed_on(gateway, upstream, status):
    error = b'{"type":"error","error":{"type":"some_error","message":"words"},"request_id":"r"}'
    upstream.script = lambda exchange: exchange.reply(status, error, retry_after="7", x_should_retry="true")
    run, token = gateway.grant()
    with gateway.asking(token) as answer:
        assert (answer.status, answer.read()) == (status, error)
        assert (answer.headers["retry-after"], answer.headers["x-should-retry"]) == ("7", "true")
    entry = gateway.entry(run)
    assert (entry.status, entry.error, entry.usd, entry.cut) == (status, "some_error", 0.0, False)


def test_a_redirect_is_not_followed(gateway, upstream):
    upstream.script = lambda exchange: exchange.reply(307, b"", location="http://127.0.0.1:1/elsewhere")
    _, token = gateway.grant()
    assert gateway.ask(token)[0] == 307
    assert len(upstream.seen) == 1


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/complete", 404),
        ("GET", "/v1/models/../messages", 404),
        ("GET", "/v1/models/..", 404),
        ("GET", "/v1/models/%2e%2e", 404),
        ("GET", "//v1/models", 404),
        ("TRACE", "/v1/messages", 405),
        ("GET", "/v1/messages", 405),
        ("DELETE", "/v1/models/x", 405),
    ],
)
def test_nothing_else_of_a_provider_can_be_reached(gateway, upstream, method, path, status):
    _, token = gateway.grant()
    assert gateway.refused(token, b"", path=path, method=method)[0] == status
    assert upstream.seen == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/models"), ("GET", "/v1/models/claude-sonnet-4-5"), ("POST", "/v1/messages/count_tokens?beta=true")],
)
def test_models_and_token_counts_are_passed_on(gateway, upstream, method, path):
    upstream.script = lambda exchange: exchange.reply(200, b'{"input_tokens":12}')
    run, token = gateway.grant()
    body = BODY if method == "POST" else b""
    assert gateway.ask(token, body, path=path, method=method) == (200, b'{"input_tokens":12}')
    assert upstream.seen[0].line == f"{method} {path} HTTP/1.1"
    assert (gateway.entry(run).input, gateway.entry(run).usd) == (0, 0.0)


def test_a_page_in_a_browser_is_refused(gateway, upstream):
    _, token = gateway.grant()
    assert gateway.refused(token, Host="evil.example")[:2] == (403, "permission_error")
    assert gateway.refused(token, Origin="http://127.0.0.1:6670")[0] == 403
    assert upstream.seen == []


@pytest.mark.parametrize(("method", "path"), [("HEAD", "/"), ("GET", "/health")])
def test_whether_it_lives_is_told_without_a_token(gateway, method, path):
    status, reply = gateway.ask("", b"", path=path, method=method)
    assert status == 200
    assert method == "HEAD" or json.loads(reply)["status"] == "healthy"


def test_a_provider_that_is_not_there_is_named(gateway, upstream):
    upstream.close()
    run, token = gateway.grant()
    status, kind, sentence = gateway.refused(token)
    assert (status, kind) == (502, "api_error")
    assert sentence.startswith("legion: provider main unreachable: ")
    entry = gateway.entry(run)
    assert (entry.status, entry.error, entry.usd) == (502, "unreachable", 0.0)


def test_a_provider_that_hangs_up_before_its_answer_is_named(gateway, upstream):
    upstream.script = lambda exchange: exchange.drop()
    _, token = gateway.grant()
    assert gateway.refused(token)[:2] == (502, "api_error")


def test_a_provider_that_says_nothing_is_given_up(tmp_path, upstream):
    hold = threading.Event()

    def script(exchange):
        if b"begin" in exchange.body:
            exchange.begin(start(input_tokens=10))
        hold.wait(60)

    upstream.script = script
    with running(tmp_path / "gateway", idle=0.3) as gateway:
        gateway.provide(upstream.url)
        silent, token = gateway.grant()
        assert gateway.refused(token)[:2] == (504, "timeout_error")
        half, token = gateway.grant()
        begin = b'{"model":"claude-sonnet-4-5","x":"begin"}'
        with gateway.asking(token, begin) as answer, pytest.raises(http.client.IncompleteRead):
            answer.read()
        assert (gateway.entry(silent).status, gateway.entry(silent).error) == (504, "idle")
        entry = gateway.entry(half)
        assert (entry.cut, entry.error, entry.input) == (True, "idle", 10)
    hold.set()


def test_the_long_lived_token_of_a_login_is_sent_with_its_flag(gateway, upstream, tmp_path):
    secret = tmp_path / "key"
    secret.touch(0o600)
    secret.write_text("sk-ant-oat01-abc\n")
    key = KeySource(origin=KeyFrom.FILE, where=str(secret))
    gateway.provide(upstream.url, key, name="login", auth=KeyStyle.BEARER)
    _, token = gateway.grant(provider="login")
    gateway.ask(token, anthropic_beta="one,two")
    (got,) = upstream.seen
    assert got.header("authorization") == "Bearer sk-ant-oat01-abc"
    assert [value for name, value in got.headers if name.lower() == "anthropic-beta"] == ["one,two,oauth-2025-04-20"]


@pytest.mark.parametrize("status", [429, 529])
def test_a_limit_of_the_provider_reaches_the_caller_and_the_ledger(gateway, upstream, status):
    error = b'{"type":"error","error":{"type":"rate_limit_error","message":"later"}}'
    headers = {name.replace("-", "_"): value for name, value in UNIFIED.items()}
    upstream.script = lambda exchange: exchange.reply(status, error, retry_after="1200", **headers)
    run, token = gateway.grant()
    with gateway.asking(token) as answer:
        assert (answer.status, answer.read(), answer.headers["retry-after"]) == (status, error, "1200")
        assert {name: answer.headers[name] for name in UNIFIED} == UNIFIED
    assert gateway.entry(run).error == "rate_limit_error"
    (found,) = gateway.limits(run)
    assert (found.status, found.resets_at, found.retry_after) == (status, 1794750000, 1200)
    assert (found.utilization, found.window, found.provider) == (0.83, "5h", "main")
