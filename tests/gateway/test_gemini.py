"""Through a real gateway: a caller of the Gemini API, and a provider of another."""

from __future__ import annotations

import json

import pytest

from legion.gateway.access.provider import ProviderDialect
from tests.gateway.dialects.bodies import ANTHROPIC_STREAM, CHAT_STREAM, RESPONSES_STREAM
from tests.gateway.dialects.test_gemini import chunks, parts
from tests.gateway.gateways import Running
from tests.gateway.golden.requests import GEMINI
from tests.gateway.upstream import Exchange

STREAMS = {
    ProviderDialect.ANTHROPIC: ANTHROPIC_STREAM,
    ProviderDialect.OPENAI_CHAT: CHAT_STREAM,
    ProviderDialect.OPENAI_RESPONSES: RESPONSES_STREAM,
}


@pytest.mark.parametrize("kind", ProviderDialect)
def test_it_can_ask_every_provider(gateway: Running, upstream, kind):
    def script(exchange: Exchange) -> None:
        exchange.begin(STREAMS[kind])
        exchange.finish()

    upstream.script = script
    gateway.provide(upstream.url, kind=kind, models={"*": "served"})
    run, token = gateway.grant()
    body = {key: value for key, value in GEMINI["tools"].items() if key not in ("model", "stream")}
    path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    with gateway.asking("", json.dumps(body).encode(), path=path, Authorization="", x_goog_api_key=token) as answer:
        assert answer.status == 200
        reply = chunks(answer.read())
    assert [one["functionCall"]["name"] for one in parts(reply) if "functionCall" in one] == ["Read", "Bash"]
    assert reply[-1]["usageMetadata"]["candidatesTokenCount"] == 42
    assert json.loads(upstream.seen[-1].body)["model"] == "served"
    entry = gateway.entry(run)
    assert (entry.output, entry.cache_read, entry.error) == (42, 500, "")


def test_its_tokens_are_estimated_and_its_refusals_are_in_its_dialect(gateway: Running, upstream):
    gateway.provide(upstream.url)
    _, token = gateway.grant(models=["claude-*"])
    path = "/v1beta/models/{}"
    count = json.dumps({"contents": GEMINI["plain"]["contents"]}).encode()
    status, reply = gateway.ask(token, count, path=path.format("claude-x:countTokens"))
    assert (status, json.loads(reply)["totalTokens"] > 0) == (200, True)
    status, reply = gateway.ask(token, count, path=path.format("gemini-2.5-pro:generateContent"))
    assert (status, json.loads(reply)["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert not upstream.seen
