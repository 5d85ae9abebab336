"""What a program asks in its own dialect reaches a provider in the provider's, with nothing lost that it knows."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from legion.gateway.dialects import signatures
from legion.gateway.dialects.common import short_name
from legion.gateway.dialects.registry import PROVIDER_DIALECTS, Dialect, read_request, request_info, write_request
from legion.gateway.http.dispatch import count_tokens
from legion.gateway.json_text import UnreadableMessage, dumps
from tests.gateway.dialects.bodies import BASH_SCHEMA, CLAUDE_CODE, CODEX, OPENCODE, PICTURE, READ_SCHEMA, Json

ANTHROPIC, CHAT, RESPONSES = Dialect.ANTHROPIC, Dialect.CHAT, Dialect.RESPONSES
BODIES = {ANTHROPIC: CLAUDE_CODE, CHAT: OPENCODE, RESPONSES: CODEX}
SMALL: dict[Dialect, Json] = {
    ANTHROPIC: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    RESPONSES: {"model": "m", "input": "hi"},
}
TOOLS: dict[Dialect, Json] = {
    ANTHROPIC: {"name": "Read", "input_schema": READ_SCHEMA},
    CHAT: {"type": "function", "function": {"name": "Read", "parameters": READ_SCHEMA}},
    RESPONSES: {"type": "function", "name": "Read", "parameters": READ_SCHEMA},
}
ALL = [(one, other) for one in PROVIDER_DIALECTS for other in PROVIDER_DIALECTS]


def translated(source: Dialect, target: Dialect, body: Json) -> Json:
    return write_request(target, read_request(source, copy.deepcopy(body)))


def small(source: Dialect, **more: Any) -> Json:
    return {**SMALL[source], "tools": [TOOLS[source]], **more}


def test_claude_code_reaches_a_chat_provider():
    body = translated(ANTHROPIC, CHAT, {**CLAUDE_CODE, "model": "qwen3"})
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    assert body["messages"] == [
        {"role": "system", "content": "You are Claude Code.\n\n# Environment\nPrimary working directory: /home/ada"},
        {"role": "user", "content": "<system-reminder>Today is Sunday.</system-reminder>\n\nRead both files."},
        {
            "role": "assistant",
            "content": "I read them.",
            "tool_calls": [
                {
                    "id": "toolu_1",
                    "type": "function",
                    "function": {"name": "Read", "arguments": '{"file_path":"/home/ada/a.png"}'},
                },
                {"id": "toolu_2", "type": "function", "function": {"name": "Bash", "arguments": '{"command":"cat b"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": "A picture:"},
        {"role": "tool", "tool_call_id": "toolu_2", "content": "Error: no such file"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What the tool gave back for toolu_1:"},
                picture,
                {"type": "text", "text": "Go on."},
            ],
        },
        {"role": "user", "content": "The person says: hurry."},
    ]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["Read", "Bash"]
    assert body["tools"][1]["function"]["parameters"] == BASH_SCHEMA
    rest = {name: value for name, value in body.items() if name not in ("messages", "tools")}
    assert rest == {
        "model": "qwen3",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 32000,
        "tool_choice": "auto",
    }


def test_claude_code_reaches_a_responses_provider():
    body = translated(ANTHROPIC, RESPONSES, {**CLAUDE_CODE, "model": "gpt-5-codex"})
    assert body["instructions"] == "You are Claude Code.\n\n# Environment\nPrimary working directory: /home/ada"
    assert [item["type"] for item in body["input"]] == [
        *("message", "message", "function_call", "function_call"),
        *("function_call_output", "function_call_output", "message", "message"),
    ]
    assert body["input"][4]["output"] == [
        {"type": "input_text", "text": "A picture:"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}", "detail": "auto"},
    ]
    assert body["input"][7]["role"] == "developer"
    assert body["tools"][0]["strict"] is False
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert (body["reasoning"]["effort"], body["max_output_tokens"]) == ("high", 32000)


def test_codex_reaches_an_anthropic_provider():
    body = translated(RESPONSES, ANTHROPIC, {**CODEX, "model": "claude-sonnet-4-5"})
    assert [one["text"] for one in body["system"]] == ["You are Codex.", "Sandbox: off."]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    calls = body["messages"][1]["content"]
    assert [(one["type"], one["id"], one["input"]) for one in calls] == [
        ("tool_use", "call_1", {"command": ["ls"]}),
        ("tool_use", "call_2", {"input": "*** Begin Patch"}),
    ]
    assert [one["tool_use_id"] for one in body["messages"][2]["content"]] == ["call_1", "call_2"]
    assert [tool["name"] for tool in body["tools"]] == ["shell", "apply_patch"]
    assert "start: begin_patch" in body["tools"][1]["description"]
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert body["max_tokens"] > 0


def test_opencode_reaches_an_anthropic_provider():
    body = translated(CHAT, ANTHROPIC, OPENCODE)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][0]["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": PICTURE}
    assert [one["type"] for one in body["messages"][1]["content"]] == ["text", "tool_use", "tool_use"]
    results = body["messages"][2]["content"]
    assert [(one["type"], one["tool_use_id"]) for one in results] == [
        ("tool_result", "call_a"),
        ("tool_result", "call_b"),
    ]


@pytest.mark.parametrize(("source", "target"), ALL)
def test_the_billing_block_of_claude_code_reaches_nobody_else(source, target):
    assert "billing-header" not in json.dumps(translated(source, target, BODIES[source]))


@pytest.mark.parametrize("source", PROVIDER_DIALECTS)
def test_anthropic_gets_at_most_four_marks_for_its_cache(source):
    assert 1 <= json.dumps(translated(source, ANTHROPIC, BODIES[source])).count("cache_control") <= 4


def test_claude_behind_an_api_like_openais_keeps_its_marks_for_caching():
    body = translated(ANTHROPIC, CHAT, {**CLAUDE_CODE, "model": "anthropic/claude-sonnet-4.5"})
    assert [one.get("cache_control") for one in body["messages"][0]["content"]] == [{"type": "ephemeral"}] * 2
    assert "cache_control" not in json.dumps(translated(ANTHROPIC, CHAT, {**CLAUDE_CODE, "model": "qwen3"}))


CHOICES: dict[Dialect, list[Any]] = {
    ANTHROPIC: [{"type": "auto"}, {"type": "any"}, {"type": "none"}, {"type": "tool", "name": "Read"}],
    CHAT: ["auto", "required", "none", {"type": "function", "function": {"name": "Read"}}],
    RESPONSES: ["auto", "required", "none", {"type": "function", "name": "Read"}],
}


@pytest.mark.parametrize(("source", "target"), ALL)
@pytest.mark.parametrize("which", range(4))
def test_what_the_model_may_use_is_said_in_every_dialect(source, target, which):
    body = translated(source, target, small(source, tool_choice=CHOICES[source][which]))
    assert body["tool_choice"] == CHOICES[target][which]


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
WANTED: dict[Dialect, Json] = {
    ANTHROPIC: {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    CHAT: {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}},
    RESPONSES: {"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}}},
}


@pytest.mark.parametrize(("source", "target"), ALL)
def test_a_schema_for_the_answer_is_said_in_every_dialect(source, target):
    body = translated(source, target, small(source, **WANTED[source]))
    (name, value), *_ = WANTED[target].items()
    assert json.dumps(body[name], sort_keys=True).replace('"answer"', '"x"') == json.dumps(value, sort_keys=True)


LENGTHS = {ANTHROPIC: "max_tokens", CHAT: "max_tokens", RESPONSES: "max_output_tokens"}


@pytest.mark.parametrize(("source", "target"), ALL)
def test_how_long_an_answer_may_be_is_said_in_every_dialect(source, target):
    assert translated(source, target, small(source, **{LENGTHS[source]: 777}))[LENGTHS[target]] == 777


def test_models_that_reason_are_asked_in_their_own_words():
    spec = {"reasoning_effort": "high", "temperature": 0.3, "max_tokens": 50}
    for model in ("gpt-5.2", "o3", "openai/gpt-5-mini"):
        body = translated(CHAT, CHAT, small(CHAT, **spec, model=model))
        assert (body["reasoning_effort"], body["max_completion_tokens"]) == ("high", 50)
        assert not {"temperature", "max_tokens"} & set(body)
    plain = translated(CHAT, CHAT, small(CHAT, **spec, model="gpt-4o"))
    assert (plain["temperature"], plain["max_tokens"], "reasoning_effort" in plain) == (0.3, 50, False)


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-sonnet-4-5", {"type": "enabled", "budget_tokens": 8192}),
        ("claude-opus-4-20250514", {"type": "enabled", "budget_tokens": 8192}),
        ("claude-opus-4-6", {"type": "adaptive"}),
        ("claude-sonnet-5", {"type": "adaptive"}),
    ],
)
def test_models_of_anthropic_think_in_their_own_way(model, thinking):
    body = translated(RESPONSES, ANTHROPIC, small(RESPONSES, model=model, reasoning={"effort": "medium"}))
    assert body["thinking"] == thinking


def test_thinking_is_off_where_a_turn_in_progress_came_without_its_thoughts():
    assert "thinking" not in translated(RESPONSES, ANTHROPIC, CODEX)
    items = copy.deepcopy(CODEX["input"])
    items[2]["encrypted_content"] = signatures.packed("ls will do.", "EqQB==")
    body = translated(RESPONSES, ANTHROPIC, {**CODEX, "input": items})
    assert body["thinking"]["type"] == "enabled"
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "ls will do.", "signature": "EqQB=="}


def test_a_thought_goes_back_to_its_maker_whole_and_to_nobody_else():
    blocks = [
        {"type": "thinking", "thinking": "one", "signature": "EqQB=="},
        {"type": "redacted_thinking", "data": "Emw="},
        {"type": "thinking", "thinking": "two", "signature": "legion-responses:rs_1:gAAA=="},
        {"type": "thinking", "thinking": "three", "signature": "legion-chat:"},
        {"type": "thinking", "thinking": "four", "signature": ""},
        {"type": "text", "text": "said"},
    ]
    talk = [*SMALL[ANTHROPIC]["messages"], {"role": "assistant", "content": blocks}]
    body = {**SMALL[ANTHROPIC], "messages": talk}
    assert translated(ANTHROPIC, ANTHROPIC, body)["messages"][1]["content"] == [blocks[0], blocks[1], blocks[5]]
    assert translated(ANTHROPIC, CHAT, body)["messages"][1] == {
        "role": "assistant",
        "content": "said",
        "reasoning_content": "three",
    }
    assert translated(ANTHROPIC, RESPONSES, body)["input"][1:] == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "two"}],
            "encrypted_content": "gAAA==",
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "said"}]},
    ]


def test_results_of_tools_come_before_everything_else_for_anthropic():
    messages = [*OPENCODE["messages"][:4], {"role": "user", "content": "Wait."}, OPENCODE["messages"][4]]
    last = translated(CHAT, ANTHROPIC, {**OPENCODE, "messages": messages})["messages"][-1]
    assert [one["type"] for one in last["content"]] == ["tool_result", "tool_result", "text"]


def test_long_names_of_tools_are_shortened_and_known_again():
    name = "mcp__" + "a_very_long_server_name__" * 4 + "tool"
    tool = {"name": name, "input_schema": READ_SCHEMA}
    used = {"type": "tool_use", "id": "t", "name": name, "input": {}}
    talk = [*SMALL[ANTHROPIC]["messages"], {"role": "assistant", "content": [used]}]
    body = translated(ANTHROPIC, CHAT, {**SMALL[ANTHROPIC], "messages": talk, "tools": [tool]})
    sent = body["tools"][0]["function"]["name"]
    assert sent == body["messages"][1]["tool_calls"][0]["function"]["name"] == short_name(name)
    assert len(sent) <= 64
    assert short_name(name + "x") != sent


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (ANTHROPIC, {}),
        (ANTHROPIC, {"model": "m", "messages": 7}),
        (ANTHROPIC, {"model": "m", "messages": [{"role": "king", "content": "x"}]}),
        (ANTHROPIC, {"model": "m", "messages": [{"role": "user", "content": [{"type": "image"}]}]}),
        (CHAT, {"model": "m"}),
        (CHAT, {"model": "m", "messages": ["hi"]}),
        (CHAT, {"model": "m", "messages": [], "tool_choice": "sometimes"}),
        (RESPONSES, {"model": "m"}),
        (RESPONSES, {"model": "m", "input": [{"type": "function_call"}]}),
        (RESPONSES, {"model": "m", "input": "go on", "previous_response_id": "resp_1"}),
        (RESPONSES, {"model": "m", "input": [{"type": "item_reference", "id": "rs_1"}]}),
    ],
)
def test_a_request_that_is_none_is_refused_in_words(dialect, body):
    with pytest.raises(UnreadableMessage):
        read_request(dialect, body)


def places(value: Any) -> list[tuple[Any, ...]]:
    """Of everything in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, one in inside for path in [(key,), *((key, *rest) for rest in places(one))]]


@given(
    source=some.sampled_from(PROVIDER_DIALECTS),
    where=some.integers(0, 10_000),
    odd=some.sampled_from([None, 7, "x", "", [], {}, [7], {"type": "x"}, True, 1.5, "\ud800"]),
)
def test_a_request_with_anything_odd_in_it_is_translated_or_refused(source, where, odd):
    body = copy.deepcopy(BODIES[source])
    every = places(body)
    *path, last = every[where % len(every)]
    inside: Any = body
    for key in path:
        inside = inside[key]
    inside[last] = odd
    with contextlib.suppress(UnreadableMessage):
        request = read_request(source, body)
        count_tokens(request)
        request_info(request, 1)
        for target in PROVIDER_DIALECTS:
            with contextlib.suppress(UnreadableMessage):
                assert json.loads(dumps(write_request(target, request)))


@pytest.mark.parametrize(("source", "target"), ALL)
def test_a_request_means_the_same_after_another_dialect(source, target):
    """What comes back from a dialect is what went in, but for what it has no words for."""
    first = read_request(source, copy.deepcopy(BODIES[source]))
    again = read_request(target, write_request(target, first))
    assert [tool.name for tool in again.tools] == [tool.name for tool in first.tools]
    assert (again.model, again.stream, again.choice) == (first.model, first.stream, first.choice)
    assert _calls(again) == _calls(first)


def _calls(request: Any) -> list[tuple[str, str]]:
    return [
        (part.name, json.dumps(json.loads(part.input), sort_keys=True))
        for message in request.messages
        for part in message.parts
        if hasattr(part, "input")
    ]
