"""Streams keep their shape whatever a provider leaves out: each part begins once and ends once, in its order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    Event,
    PartEnded,
    PartGrew,
    PartStarted,
    RequestInfo,
)
from legion.gateway.dialects.registry import PROVIDER_DIALECTS, Dialect, StreamReader, writer
from legion.gateway.dialects.sse import Splitter
from tests.gateway.dialects.bodies import ANTHROPIC_STREAM, CHAT_STREAM, RESPONSES_STREAM, Json, sse

STREAMS = {Dialect.ANTHROPIC: ANTHROPIC_STREAM, Dialect.CHAT: CHAT_STREAM, Dialect.RESPONSES: RESPONSES_STREAM}


def read(dialect: Dialect, stream: bytes) -> list[Event]:
    reader = StreamReader(dialect, RequestInfo(model="m"))
    return [*reader.feed(stream), *reader.end()]


def shaped(events: list[Event]) -> None:
    """Nothing grows before its beginning or after its end, and all is closed before the answer ends."""
    begun, ended = list[int](), set[int]()
    for event in events:
        match event:
            case PartStarted():
                begun.append(event.index)
            case PartGrew():
                assert event.index in begun
                assert event.index not in ended
            case PartEnded():
                assert event.index not in ended
                ended.add(event.index)
    assert begun == list(range(len(begun)))
    assert ended == set(begun)
    assert isinstance(events[-1], AnswerEnded)


@pytest.mark.parametrize("dialect", PROVIDER_DIALECTS)
def test_every_part_begins_and_ends_once(dialect):
    shaped(read(dialect, STREAMS[dialect]))


def test_responses_may_leave_out_the_ends_of_their_items():
    events = RESPONSES_STREAM.split(b"\n\n")
    left = [one for one in events if b"content_part" not in one and b"output_item.done" not in one]
    shaped(read(Dialect.RESPONSES, b"\n\n".join(left)))


def test_what_follows_a_call_ends_it():
    def chunk(**delta: Any) -> dict[str, Any]:
        return {"id": "c", "choices": [{"delta": delta, "finish_reason": None}]}

    call = {"index": 0, "id": "1", "function": {"name": "ls", "arguments": "{}"}}
    ends = {"id": "c", "choices": [{"delta": {}, "finish_reason": "stop"}]}
    events = read(Dialect.CHAT, sse(chunk(tool_calls=[call]), chunk(content="after it"), ends, "[DONE]"))
    shaped(events)
    parts = [(type(one), one.index) for one in events if isinstance(one, PartStarted | PartEnded)]
    assert parts == [(PartStarted, 0), (PartEnded, 0), (PartStarted, 1), (PartEnded, 1)]


def test_blocks_of_anthropics_own_servers_are_left_out_without_a_gap():
    searched = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    begun = {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {}}}
    text = {"type": "text", "text": ""}
    stream = sse(
        begun,
        {"type": "content_block_start", "index": 0, "content_block": searched},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": text},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "found"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_stop"},
    )
    events = read(Dialect.ANTHROPIC, stream)
    shaped(events)
    assert PartGrew(0, "found") in events


LATE: dict[Dialect, tuple[bytes, list[Json]]] = {
    Dialect.ANTHROPIC: (
        b'"index": 3}\n\n',
        [{"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "x"}}],
    ),
    Dialect.CHAT: (
        b'"finish_reason": null}]}\n\n',
        [
            {"choices": [{"delta": {"content": "x"}}]},
            {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}}]},
        ],
    ),
    Dialect.RESPONSES: (
        b'"type": "function_call", "id": "fc_2"',
        [{"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "x"}],
    ),
}


@pytest.mark.parametrize("dialect", PROVIDER_DIALECTS)
def test_a_part_that_goes_on_after_its_end_ends_the_answer_with_an_error(dialect):
    mark, late = LATE[dialect]
    stream = STREAMS[dialect]
    at = stream.index(b"\n\n", stream.rindex(mark)) + 2
    assert isinstance(read(dialect, stream[:at] + sse(*late) + stream[at:])[-1], AnswerFailed)


@given(
    dialect=some.sampled_from(PROVIDER_DIALECTS),
    order=some.lists(some.integers(0, 30), max_size=40),
    broken=some.sampled_from([b"", b"index", b"delta", b"type", b"id", b"function", b"item", b"choices", b"message"]),
)
def test_whatever_is_missing_doubled_or_out_of_order_nobody_breaks_on_it(dialect, order, broken):
    """There is always one end, and every dialect has words for all that came before."""
    events = STREAMS[dialect].split(b"\n\n")[:-1]
    stream = b"".join(events[one % len(events)] + b"\n\n" for one in order)
    if broken:
        stream = stream.replace(b'"%s"' % broken, b'"odd"', 1)
    found = read(dialect, stream)
    assert isinstance(found[-1], AnswerEnded | AnswerFailed)
    assert sum(isinstance(one, AnswerEnded | AnswerFailed) for one in found) == 1
    for other in Dialect:
        into = writer(other, RequestInfo(model="m"))
        reply = b"".join(into.write(one) for one in found)
        # Chat Completions has no words for parts that overlap in time, and no provider answers in Gemini's dialect.
        assert other in (Dialect.CHAT, Dialect.GEMINI) or isinstance(read(other, reply)[-1], type(found[-1]))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_of_several_lines_is_one_wherever_it_is_cut(end):
    stream = end.join([b": a remark", b"event: x", b"data: one", b"data:two", b"id: 7", b"", b"data: three", b"", b""])
    for at in range(len(stream) + 1):
        splitter = Splitter()
        assert [*splitter.feed(stream[:at]), *splitter.feed(stream[at:]), *splitter.end()] == [b"one\ntwo", b"three"]
