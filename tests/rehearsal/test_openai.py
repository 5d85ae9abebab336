"""The rehearsal in OpenAI's dialects: the same script, complete and streamed, with its errors."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from legion.rehearsal.process import Playing
from legion.rehearsal.protocol.log import RequestKind
from tests.support.stage import playing

SCRIPT = """
[[step]]
think = "Two calls."
say = "I look at it."
calls = [{tool = "ls", input = {path = "a"}}, {tool = "ls", input = {path = "b"}}]
usage = {input = 100, output = 20, cache_read = 50, cache_write = 7}

[[step]]
expect = "two files"
status = 529
times = 1
say = "Done."
stop = "max_tokens"

[[step]]
drop = "mid"
say = "This one is never finish to its end, for it breaks off in the middle of what it says."
"""
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
TOOLS = {
    CHAT: [{"type": "function", "function": {"name": "ls", "parameters": {}}}],
    RESPONSES: [{"type": "function", "name": "ls", "parameters": {}}],
}
FIRST = {"role": "user", "content": "rehearsal: look"}
SECOND: dict[str, list[Any]] = {
    CHAT: [
        FIRST,
        {"role": "assistant", "content": "I look at it.", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
            {"id": "2", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "1", "content": "two"},
        {"role": "tool", "tool_call_id": "2", "content": "two files"},
    ],
    RESPONSES: [
        FIRST,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look at it."}]},
        {"type": "function_call", "call_id": "1", "name": "ls", "arguments": "{}"},
        {"type": "function_call", "call_id": "2", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "two"},
        {"type": "function_call_output", "call_id": "2", "output": "two files"},
    ],
}  # fmt: skip


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Playing]:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "look.toml").write_text(SCRIPT)
    with playing(scripts, tmp_path) as one:
        yield one


def ask(play: Playing, path: str, talk: list[Any], **more: Any) -> tuple[int, bytes]:
    facts = {"model": "m", "tools": TOOLS[path], "messages" if path == CHAT else "input": talk, **more}
    connection = http.client.HTTPConnection(urlsplit(play.url).netloc, timeout=60)
    try:
        connection.request("POST", path, json.dumps(facts), {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def events(body: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]


def test_a_step_is_said_in_chat_completions_whole_and_streamed(play):
    whole = json.loads(ask(play, CHAT, [FIRST])[1])
    reply = whole["choices"][0]["message"]
    assert (reply["reasoning_content"], reply["content"]) == ("Two calls.", "I look at it.")
    assert [call["function"]["arguments"] for call in reply["tool_calls"]] == ['{"path": "a"}', '{"path": "b"}']
    assert whole["choices"][0]["finish_reason"] == "tool_calls"
    assert (whole["usage"]["prompt_tokens"], whole["usage"]["prompt_tokens_details"]) == (157, {"cached_tokens": 50})
    _, body = ask(play, CHAT, [FIRST], stream=True)
    assert body.endswith(b"data: [DONE]\n\n")
    deltas = [one["choices"][0]["delta"] for one in events(body) if one["choices"]]
    assert "".join(one.get("content") or "" for one in deltas) == "I look at it."
    pieces = [call for one in deltas for call in one.get("tool_calls", [])]
    second = "".join(one["function"]["arguments"] for one in pieces if one["index"] == 1)
    assert second == '{"path": "b"}'
    assert events(body)[-1]["usage"] == whole["usage"]


def test_a_step_is_said_in_responses_whole_and_streamed(play):
    whole = json.loads(ask(play, RESPONSES, [FIRST])[1])
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message", "function_call", "function_call"]
    assert whole["usage"]["input_tokens_details"] == {"cached_tokens": 50}
    _, body = ask(play, RESPONSES, [FIRST], stream=True)
    found = events(body)
    assert (found[0]["type"], found[-1]["type"]) == ("response.created", "response.completed")
    text = "".join(one["delta"] for one in found if one["type"] == "response.output_text.delta")
    assert text == "I look at it."
    assert [item["type"] for item in found[-1]["response"]["output"]] == [item["type"] for item in whole["output"]]


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_the_next_step_follows_and_trouble_comes_in_the_dialects_words(play, path):
    status, body = ask(play, path, SECOND[path])
    assert (status, json.loads(body)["error"]["type"]) == (503, "server_error")
    status, body = ask(play, path, SECOND[path])
    assert (status, b"Done." in body) == (200, True)
    outcome = json.loads(body)
    assert outcome["choices"][0]["finish_reason"] == "length" if path == CHAT else outcome["status"] == "incomplete"
    third = [*SECOND[path], {"role": "assistant", "content": "Done."}, {"role": "user", "content": "Go on."}]
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(play, path, third, stream=True)
    assert [(line.kind, line.step) for line in play.lines()] == [
        (RequestKind.TROUBLE, 2),
        (RequestKind.SCRIPTED, 2),
        (RequestKind.TROUBLE, 3),
    ]


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_what_is_no_request_and_what_has_no_tools_is_no_step(play, path):
    status, body = ask(play, path, [{"role": "user"}])
    assert (status, json.loads(body)["error"]["type"]) == (400, "invalid_request_error")
    assert b"Rehearsal" in ask(play, path, [FIRST], tools=[])[1]
    assert [line.kind for line in play.lines()] == [RequestKind.UNEXPECTED, RequestKind.SIDE]
