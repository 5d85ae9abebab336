"""Faults of providers, in every direction: each caller gets a well-formed answer, and no other provider is asked."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from legion.gateway.access.provider import ProviderDialect
from legion.gateway.dialects.common import collect_answer, events_of
from legion.gateway.dialects.messages import AnswerFailed, ModelAnswer, RequestInfo, StopReason, TextPart
from legion.gateway.dialects.registry import Dialect, writer
from tests.gateway.dialects.bodies import CLAUDE_CODE
from tests.gateway.gateways import BODY, Running
from tests.gateway.test_translate import PAIRS, STREAMS, ask, read
from tests.gateway.upstream import PATIENCE, Exchange, Upstream

BUSY = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'


@pytest.fixture
def elsewhere() -> Iterator[Upstream]:
    """A server that must get no request."""
    server = Upstream()
    yield server
    assert server.seen == []
    server.close()


@pytest.mark.parametrize(("caller", "kind"), PAIRS)
@pytest.mark.parametrize(
    ("status", "after", "outcome"),
    [(401, None, {401}), (429, None, {429}), (429, "17", {429}), (529, None, {529, 503}), (500, None, {500})],
)
def test_an_error_is_one_to_every_caller(gateway, upstream, caller, kind, status, after, outcome):
    gateway.provide(upstream.url, kind=kind)
    error = {"type": "error", "error": {"type": "some_error", "message": "no", "code": None}}
    headers = {} if after is None else {"retry_after": after}
    upstream.script = lambda exchange: exchange.reply(status, json.dumps(error).encode(), **headers)
    _, token = gateway.grant()
    path = {Dialect.ANTHROPIC: "/v1/messages", Dialect.CHAT: "/v1/chat/completions"}.get(caller, "/v1/responses")
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "input": "hi"}
    with gateway.asking(token, json.dumps(body).encode(), path=path) as answer:
        reply = json.loads(answer.read())
        assert answer.status in outcome | {status}
        assert answer.getheader("retry-after") == after
    assert isinstance(reply["error"]["message"], str)
    assert isinstance(reply["error"]["type"], str)
    assert len(upstream.seen) == 1


@pytest.mark.parametrize(("caller", "kind"), PAIRS)
def test_a_slow_drip_arrives_whole(gateway, upstream, caller, kind):
    def drip(exchange: Exchange) -> None:
        exchange.begin(*(STREAMS[kind][at : at + 1] for at in range(len(STREAMS[kind]))))
        exchange.finish()

    gateway.provide(upstream.url, kind=kind)
    upstream.script = drip
    _, token = gateway.grant()
    _, body = ask(gateway, token, caller)
    assert [part.text for part in collect_answer(read(caller, body)).parts if isinstance(part, TextPart)] == [
        "Grüße, Ada 🙂"
    ]


@pytest.mark.parametrize(
    ("caller", "kind"),
    [(Dialect.ANTHROPIC, ProviderDialect.OPENAI_CHAT), (Dialect.CHAT, ProviderDialect.ANTHROPIC), *PAIRS[:1]],
)
def test_an_event_of_ten_megabytes_arrives_whole(gateway, upstream, caller, kind):
    answer = ModelAnswer(id="i", model="m", parts=(TextPart(text="x" * (10 << 20)),), stop=StopReason.END)
    into = writer(Dialect(kind.value), RequestInfo())
    stream = b"".join(into.write(event) for event in events_of(answer))

    def script(exchange: Exchange) -> None:
        exchange.begin(stream)
        exchange.finish()

    gateway.provide(upstream.url, kind=kind)
    upstream.script = script
    _, token = gateway.grant()
    _, body = ask(gateway, token, caller)
    (part,) = collect_answer(read(caller, body)).parts
    assert isinstance(part, TextPart)
    assert len(part.text) == 10 << 20


@pytest.mark.parametrize("caller", [Dialect.ANTHROPIC, Dialect.RESPONSES])
def test_an_event_that_never_ends_is_cut_and_said(gateway, upstream, caller):
    hung_up = threading.Event()

    def script(exchange: Exchange) -> None:
        exchange.begin(b"data: ")
        with contextlib.suppress(OSError):
            while True:
                exchange.piece(b"x" * (1 << 20))
        hung_up.set()

    gateway.provide(upstream.url, kind=ProviderDialect.OPENAI_CHAT)
    upstream.script = script
    _, token = gateway.grant()
    _, body = ask(gateway, token, caller)
    assert isinstance(read(caller, body)[-1], AnswerFailed)
    assert hung_up.wait(PATIENCE)


@pytest.mark.parametrize(("caller", "kind"), PAIRS[:2])
def test_a_stream_that_never_ends_ends_with_its_caller(gateway, upstream, caller, kind):
    hung_up = threading.Event()

    def script(exchange: Exchange) -> None:
        exchange.begin(STREAMS[kind][: STREAMS[kind].index(b"\n\n", 300) + 2])
        with contextlib.suppress(OSError):
            while True:
                exchange.piece(b": still here\n\n")
        hung_up.set()

    gateway.provide(upstream.url, kind=kind)
    upstream.script = script
    run, token = gateway.grant()
    with gateway.asking(token, json.dumps(CLAUDE_CODE).encode()) as answer:
        assert answer.read1(100)
    assert hung_up.wait(PATIENCE)
    assert gateway.entry(run).error == "caller_gone"


NAMES = [
    "http://{place}/", "@{place}", "//{place}/v1", "../../../etc/passwd", "x\r\nHost: {place}", "a?url=http://{place}",
    "{place}/gpt", "file:///etc/passwd", "main/../other", "\x00", "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ProviderDialect)
def test_the_name_of_a_model_leads_nowhere_else(gateway, upstream, elsewhere, name, kind):
    gateway.provide(upstream.url, kind=kind)
    upstream.script = lambda exchange: exchange.reply(400, BUSY)
    _, token = gateway.grant()
    model = name.format(place=elsewhere.url.removeprefix("http://"))
    ask(gateway, token, Dialect.ANTHROPIC, model=model)
    assert [one.line.split()[1] for one in upstream.seen] in (
        [],
        [
            {ProviderDialect.ANTHROPIC: "/v1/messages", ProviderDialect.OPENAI_CHAT: "/v1/chat/completions"}.get(
                kind, "/v1/responses"
            )
        ],
    )
    assert all(one.header("host") == urlsplit(upstream.url).netloc for one in upstream.seen)


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-Host", "Forwarded", "X-Original-URL", "X-Rewrite-URL", "Location", "X-Api-Base", "Base-Url",
        "X-Target-Url", "Proxy", "Referer",
    ],
)  # fmt: skip
def test_no_header_leads_elsewhere(gateway, upstream, elsewhere, header):
    _, token = gateway.grant()
    assert gateway.ask(token, **{header.replace("-", "_"): elsewhere.url})[0] == 200
    assert [one.header("host") for one in upstream.seen] == [urlsplit(upstream.url).netloc]


@pytest.mark.parametrize(
    "target",
    [
        "http://{place}/v1/messages", "//{place}/v1/messages", "/v1/messages/../../{place}", "/{place}/v1/messages",
        "/v1/messages@{place}", "/v1/models/..%2f..%2f{place}", "/v1/models/http:%2f%2f{place}", "{place}:443",
    ],
)  # fmt: skip
def test_no_target_of_a_request_leads_elsewhere(gateway: Running, upstream, elsewhere, target):
    _, token = gateway.grant()
    where = urlsplit(gateway.url)
    wanted = target.format(place=elsewhere.url.removeprefix("http://"))
    head = f"POST {wanted} HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE) as line:
        line.sendall(f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
        reply = b"".join(iter(lambda: line.recv(65536), b""))
    status = int(reply.split()[1])
    # The whole address of a known path is that path; everything else is nothing here.
    assert status in (400, 404, 405) or (status == 200 and len(upstream.seen) == 1)
    assert all(one.header("host") == urlsplit(upstream.url).netloc for one in upstream.seen)
