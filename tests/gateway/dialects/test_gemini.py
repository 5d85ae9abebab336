"""Callers of the Gemini API: what they ask reaches any provider, and what they get is what Google's library reads."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from legion.gateway.access.admission import Endpoint, model_in_path, route_of, token_of
from legion.gateway.dialects.common import events_of
from legion.gateway.dialects.messages import (
    AnswerFailed,
    KeepAlive,
    ModelError,
    ModelErrorKind,
    RequestInfo,
    ThinkingPart,
    ToolCallPart,
)
from legion.gateway.dialects.registry import (
    PROVIDER_DIALECTS,
    Dialect,
    read_request,
    write_answer,
    write_error,
    write_request,
    writer,
)
from legion.gateway.json_text import UnreadableMessage
from tests.gateway.golden.answers import ANSWERS
from tests.gateway.golden.requests import GEMINI, REQUESTS

ASKED = RequestInfo(model="m", at=1)


def chunks(stream: bytes) -> list[dict[str, Any]]:
    """As Google's library splits it: every event is `data: ` and one JSON document."""
    found = [piece for piece in stream.split(b"\n\n") if piece]
    assert all(piece.startswith(b"data: ") for piece in found)
    return [json.loads(piece.removeprefix(b"data: ")) for piece in found]


def parts(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for one in answers for part in one["candidates"][0]["content"]["parts"]]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_streamed_answer_says_what_the_complete_one_says(name):
    into = writer(Dialect.GEMINI, ASKED)
    streamed = chunks(b"".join(into.write(event) for event in events_of(ANSWERS[name])))
    complete = write_answer(Dialect.GEMINI, ANSWERS[name], ASKED)
    last = streamed[-1]
    assert last["candidates"][0]["finishReason"] == complete["candidates"][0]["finishReason"]
    assert last["usageMetadata"] == complete["usageMetadata"]
    assert [one.get("text") for one in parts(streamed)] == [one.get("text") for one in parts([complete])]
    assert [one for one in parts(streamed) if "functionCall" in one] == [
        one for one in parts([complete]) if "functionCall" in one
    ]


def test_thinking_returns_to_its_provider_in_front_of_the_call():
    answer = write_answer(Dialect.GEMINI, ANSWERS["thought, words and a call"], ASKED)
    said = answer["candidates"][0]["content"]
    body = {"model": "m", "contents": [{"role": "user", "parts": [{"text": "go"}]}, said]}
    (_, turn) = read_request(Dialect.GEMINI, body).messages
    assert isinstance(turn.parts[0], ThinkingPart)
    assert turn.parts[0].signature == "EqQBCgIYAhIM+/=="
    assert isinstance(turn.parts[-1], ToolCallPart)


@given(
    name=some.sampled_from(sorted(GEMINI)),
    where=some.integers(0, 10_000),
    odd=some.sampled_from([None, 7, "x", "", [], {}, [7], {"type": "x"}, True, 1.5]),
)
def test_a_request_with_anything_odd_in_it_is_translated_or_refused(name, where, odd):
    body = copy.deepcopy(REQUESTS[Dialect.GEMINI][name])
    every = list(_places(body))
    *path, last = every[where % len(every)]
    inside: Any = body
    for key in path:
        inside = inside[key]
    inside[last] = odd
    for target in PROVIDER_DIALECTS:
        try:
            assert json.dumps(write_request(target, read_request(Dialect.GEMINI, body)))
        except UnreadableMessage:
            continue


def _places(value: Any) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, one in inside for path in [(key,), *((key, *rest) for rest in _places(one))]]


def test_a_silent_stream_stays_readable():
    (kept,) = chunks(writer(Dialect.GEMINI, ASKED).write(KeepAlive()))
    assert parts([kept]) == []


@pytest.mark.parametrize(
    ("kind", "status", "name"),
    [
        (ModelErrorKind.INVALID, 400, "INVALID_ARGUMENT"),
        (ModelErrorKind.TOO_LONG, 400, "INVALID_ARGUMENT"),
        (ModelErrorKind.AUTHENTICATION, 401, "UNAUTHENTICATED"),
        (ModelErrorKind.BILLING, 403, "PERMISSION_DENIED"),
        (ModelErrorKind.PERMISSION, 403, "PERMISSION_DENIED"),
        (ModelErrorKind.NOT_FOUND, 404, "NOT_FOUND"),
        (ModelErrorKind.TOO_LARGE, 413, "INVALID_ARGUMENT"),
        (ModelErrorKind.LIMIT, 429, "RESOURCE_EXHAUSTED"),
        (ModelErrorKind.API, 500, "INTERNAL"),
        (ModelErrorKind.OVERLOADED, 503, "UNAVAILABLE"),
        (ModelErrorKind.TIMEOUT, 504, "DEADLINE_EXCEEDED"),
    ],
)
def test_an_error_has_googles_name(kind, status, name):
    fault = ModelError(kind=kind, message="it did not work")
    answered, body = write_error(Dialect.GEMINI, fault)
    assert (answered, body["error"]["code"], body["error"]["status"]) == (status, status, name)
    assert chunks(writer(Dialect.GEMINI, ASKED).write(AnswerFailed(error=fault))) == [body]


def test_its_paths_name_the_model_and_nothing_else():
    path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent"
    assert route_of("POST", path).endpoint is Endpoint.STREAM_GENERATE
    assert model_in_path(path) == "gemini-2.5-pro"
    assert token_of({"x-goog-api-key": "legion-1"}) == "legion-1"
