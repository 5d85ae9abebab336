"""The same request by way of the gateway and by way of an independent library: a provider hears the same, and so does
the caller."""

from __future__ import annotations

import copy
import gc
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from legion.gateway.access.provider import ProviderDialect
from legion.gateway.dialects.messages import StopReason
from legion.gateway.dialects.registry import Dialect, write_answer
from tests.gateway.gateways import Running
from tests.gateway.golden.answers import ANSWERS
from tests.gateway.golden.kept import ASKED
from tests.gateway.golden.requests import ANTHROPIC, CHAT
from tests.gateway.upstream import Upstream

# The library leaves connections open, which only it could close.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Json = dict[str, Any]
# Where the two differ, and why; the golden set says what we do there.
_STREAMED = "its stream is read elsewhere"
_CHAT_LEFT_OUT = {
    "developer": "it takes no developer for Anthropic",
    "user": "it has no user for Anthropic",
    "any json": "it has no answer in JSON without a schema",
    "longest anew": "it does not know max_completion_tokens",
    "settings": _STREAMED,
    "stream with usage": _STREAMED,
}
_ANTHROPIC_LEFT_OUT = {
    "tool with a long name": "OpenAI takes 64 letters at most, and we shorten",
    "tool of its own servers": "it passes it on to a provider that does not have it",
    "effort": "it does not know output_config",
    "schema": "it does not know output_config",
    "document": "it leaves it out",
    "result with a picture": "Chat Completions has no pictures in results, and it sends them there",
    "settings": _STREAMED,
}
ANSWERED = [
    "words", "letters", "call", "call with a rich input", "two calls", "words and a call", "cut at its length",
]  # fmt: skip


@cache
def other() -> Any:
    """The library, imported only when these tests run: it takes seconds."""
    return pytest.importorskip("any_llm", reason="any-llm-sdk is not installed; `make` installs it")


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> Iterator[None]:
    """All that is there before the tests is left out of the sweeps between them, which would take most of the time."""
    other()
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _swept() -> Iterator[None]:
    """What it left open is closed here, and not in the middle of another test."""
    yield
    gc.collect()


def asked_of_anthropic(body: Json) -> object:
    """The meaning of a request for Anthropic, independent of its writer."""
    system = body.get("system") or ""
    instructions = system if isinstance(system, str) else "\n".join(one["text"] for one in system)
    tools = [(one["name"], one.get("description"), one["input_schema"]) for one in body.get("tools", [])]
    messages: list[tuple[str, list[object]]] = []
    for one in body["messages"]:
        blocks = [_block(block) for block in _list(one["content"])]
        if messages and messages[-1][0] == one["role"]:
            # Two of a side are one to Anthropic.
            messages[-1][1].extend(blocks)
        else:
            messages.append((one["role"], blocks))
    choice = body.get("tool_choice") or {"type": "auto"}
    kept = {key: choice.get(key) for key in ("type", "name")}
    return instructions, tools, messages, kept, bool(choice.get("disable_parallel_tool_use"))


def _list(content: object) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content  # type: ignore[return-value]


def _block(block: Json) -> object:
    match block["type"]:
        case "text":
            return block["text"]
        case "image":
            return block["source"]
        case "tool_use":
            return block["id"], block["name"], block["input"]
        case _:
            return block["tool_use_id"], [_block(one) for one in _list(block.get("content") or "")]


def asked_of_chat(body: Json) -> object:
    messages = [_message(one) for one in body["messages"]]
    tools = [
        (one["function"]["name"], one["function"].get("description") or None, one["function"]["parameters"])
        for one in body.get("tools", [])
    ]
    choice = body.get("tool_choice") or "auto"
    return messages, tools, choice, body.get("parallel_tool_calls") is False


def _message(one: Json) -> object:
    content = one.get("content") or ""
    parts = [content] if isinstance(content, str) else [part.get("text", part.get("image_url")) for part in content]
    # The boundaries between texts are not part of the API.
    text = "".join(json.dumps(part) if isinstance(part, dict) else part.replace("\n", "") for part in parts)
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in one.get("tool_calls") or ()
    ]
    return one["role"], text, calls, one.get("tool_call_id")


@pytest.mark.parametrize("name", [name for name in CHAT if name not in _CHAT_LEFT_OUT])
def test_anthropic_hears_the_same_of_a_chat_request(gateway: Running, upstream: Upstream, name: str):
    gateway.provide(upstream.url)
    upstream.script = lambda exchange: exchange.reply(200, _anthropic_answer("words"))
    _, token = gateway.grant()
    body = {**copy.deepcopy(CHAT[name]), "model": "claude-sonnet-4-5"}
    assert gateway.ask(token, json.dumps(body).encode(), path="/v1/chat/completions")[0] == 200
    other().completion(provider="anthropic", api_base=upstream.url, api_key="k", **copy.deepcopy(body))
    ours, theirs = (asked_of_anthropic(json.loads(one.body)) for one in upstream.seen)
    assert ours == theirs


@pytest.mark.parametrize("name", [name for name in ANTHROPIC if name not in _ANTHROPIC_LEFT_OUT])
def test_a_chat_provider_hears_the_same_of_a_request_of_anthropics(gateway: Running, upstream: Upstream, name: str):
    gateway.provide(upstream.url, kind=ProviderDialect.OPENAI_CHAT)
    upstream.script = lambda exchange: exchange.reply(200, _chat_answer("words"))
    _, token = gateway.grant()
    body = copy.deepcopy(ANTHROPIC[name])
    assert gateway.ask(token, json.dumps(body).encode())[0] == 200
    other().messages(provider="openai", api_base=f"{upstream.url}/v1", api_key="k", **body)
    ours, theirs = (asked_of_chat(json.loads(one.body)) for one in upstream.seen)
    assert ours == theirs


@pytest.mark.parametrize("name", ANSWERED)
def test_a_caller_of_chat_hears_the_same_of_anthropics_answer(gateway: Running, upstream: Upstream, name: str):
    gateway.provide(upstream.url)
    upstream.script = lambda exchange: exchange.reply(200, _anthropic_answer(name))
    _, token = gateway.grant()
    body = {**CHAT["plain"], "model": "claude-sonnet-4-5"}
    _, reply = gateway.ask(token, json.dumps(body).encode(), path="/v1/chat/completions")
    theirs = other().completion(provider="anthropic", api_base=upstream.url, api_key="k", **body)
    one, two = json.loads(reply), json.loads(theirs.model_dump_json())
    assert _message(one["choices"][0]["message"]) == _message(two["choices"][0]["message"])
    assert one["choices"][0]["finish_reason"] == two["choices"][0]["finish_reason"]
    assert one["usage"]["completion_tokens"] == two["usage"]["completion_tokens"]
    assert one["usage"]["prompt_tokens"] == two["usage"]["prompt_tokens"]


@pytest.mark.parametrize("name", ANSWERED)
def test_a_caller_of_anthropic_hears_the_same_of_a_chat_answer(gateway: Running, upstream: Upstream, name: str):
    gateway.provide(upstream.url, kind=ProviderDialect.OPENAI_CHAT)
    upstream.script = lambda exchange: exchange.reply(200, _chat_answer(name))
    _, token = gateway.grant()
    _, reply = gateway.ask(token, json.dumps(ANTHROPIC["plain"]).encode())
    theirs = other().messages(provider="openai", api_base=f"{upstream.url}/v1", api_key="k", **ANTHROPIC["plain"])
    one, two = json.loads(reply), json.loads(theirs.model_dump_json())
    assert [_block(block) for block in one["content"]] == [_block(block) for block in two["content"]]
    assert one["stop_reason"] == two["stop_reason"]
    assert one["usage"]["output_tokens"] == two["usage"]["output_tokens"]


def test_the_answers_that_are_compared_end_in_different_ways():
    assert {ANSWERS[name].stop for name in ANSWERED} == {StopReason.END, StopReason.CALLS, StopReason.LENGTH}


def _anthropic_answer(name: str) -> bytes:
    return json.dumps(write_answer(Dialect.ANTHROPIC, ANSWERS[name], ASKED)).encode()


def _chat_answer(name: str) -> bytes:
    return json.dumps(write_answer(Dialect.CHAT, ANSWERS[name], ASKED)).encode()
