"""Every refused request gets a line in the ledger, without its token; a flood gets few lines."""

from __future__ import annotations

import json
import signal

import pytest

from legion.gateway.accounting.ledger import RefusalEntry, RequestError
from legion.gateway.accounting.meter import MINUTE, RefusalGroup, Refusals
from tests.gateway.gateways import Running, eventually, everything, forked_child
from tests.gateway.upstream import PATIENCE

WRONG = "legion-wrong-5e1f0c7d9b3a"


def refusals(gateway: Running) -> list[RefusalEntry]:
    return [line for line in everything(gateway.folder) if isinstance(line, RefusalEntry)]


@pytest.mark.parametrize(
    ("asked", "status", "reason"),
    [
        ({"token": WRONG}, 401, RequestError.NO_PASS),
        ({"Origin": "https://evil.example"}, 403, RequestError.FOREIGN),
        ({"Host": "evil.example"}, 403, RequestError.FOREIGN),
        ({"path": f"/{WRONG}"}, 404, RequestError.NO_SUCH_PATH),
        ({"method": "DELETE"}, 405, RequestError.METHOD),
        ({"path": "/legion/config", "body": b'{"api_key": "mine"}'}, 403, RequestError.BAD_REQUEST),
        ({"path": "/legion/nothing"}, 404, RequestError.NO_SUCH_PATH),
    ],
)
def test_every_refusal_leaves_a_line_without_what_was_shown(gateway, upstream, asked, status, reason):
    run, token = gateway.grant()
    before = len(refusals(gateway))
    assert gateway.refused(**{"token": token, **asked})[0] == status
    *_, line = eventually(lambda: refusals(gateway), lambda found: len(found) > before)
    assert (line.status, line.reason, line.times) == (status, reason.value, 1)
    assert line.run == (run if asked.get("path") == "/legion/config" else "")
    written = b"".join(path.read_bytes() for path in gateway.folder.ledger.iterdir())
    assert WRONG.encode() not in written
    assert token.encode() not in written
    assert upstream.seen == []


def test_a_request_that_cannot_be_read_is_a_line_of_its_run(gateway):
    run, token = gateway.grant()
    assert gateway.ask(token, b"no json", path="/v1/responses")[0] == 400
    assert (gateway.entry(run).status, gateway.entry(run).error) == (400, "bad_request")


def test_a_flood_of_refusals_leaves_few_lines_and_none_is_uncounted(tmp_path):
    with forked_child(tmp_path / "gateway") as (gateway, child):
        gateway.provide("http://127.0.0.1:9")
        run, token = gateway.grant(models=())
        for _ in range(150):
            assert gateway.refused(WRONG)[0] == 401
            assert gateway.refused(token)[0] == 403
        child.send_signal(signal.SIGTERM)
        child.wait(PATIENCE)
    lines = everything(gateway.folder)
    assert len(lines) < 30
    assert sum(line.times for line in lines if isinstance(line, RefusalEntry) and not line.run) == 150
    (rest,) = [line for line in lines if isinstance(line, RefusalEntry) and line.run == run]
    assert rest.times + len(gateway.entries(run, 1)) == 150
    assert rest.reason == "model_not_allowed"


def test_what_was_counted_is_told_when_its_minute_is_over():
    now = [0.0]
    counting = Refusals(lambda: now[0])
    group = RefusalGroup(status=401, error=RequestError.NO_PASS)
    outcome = sum(counting.gets_line(group) for _ in range(100))
    assert counting.take_counted() == []
    now[0] = MINUTE
    (line,) = counting.take_counted()
    assert (outcome + line.times, counting.is_empty) == (100, True)
    assert counting.gets_line(group)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
def test_a_model_that_a_run_may_not_use_is_refused_in_the_words_of_the_caller(gateway, upstream, path):
    _, token = gateway.grant(models=("claude-haiku-*",))
    body = {"model": "claude-opus-5", "messages": [], "input": "hi"}
    with gateway.asking(token, json.dumps(body).encode(), path=path) as answer:
        error = json.loads(answer.read())["error"]
        assert (answer.status, answer.getheader("x-should-retry")) == (403, "false")
    assert error["message"] == "legion: model not allowed: claude-opus-5; this run may use claude-haiku-*."
    assert error["type"] == "permission_error"
    assert upstream.seen == []
