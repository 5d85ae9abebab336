"""Answers in every dialect say the same: whole, streamed, cut at any byte, ended by an error."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from legion.gateway.counting.counters import TokenCounts
from legion.gateway.dialects.common import collect_answer, events_of
from legion.gateway.dialects.messages import (
    AnswerEnded,
    AnswerFailed,
    AnswerStarted,
    Event,
    ModelAnswer,
    ModelErrorKind,
    ModelFailed,
    PartGrew,
    RequestInfo,
    StopReason,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from legion.gateway.dialects.registry import PROVIDER_DIALECTS, Dialect, StreamReader, read_answer, write_answer, writer
from legion.gateway.json_text import UnreadableMessage
from tests.gateway.dialects.bodies import ANTHROPIC_STREAM, CHAT_STREAM, RESPONSES_STREAM, sse

ANTHROPIC, CHAT, RESPONSES = Dialect.ANTHROPIC, Dialect.CHAT, Dialect.RESPONSES
STREAMS = {ANTHROPIC: ANTHROPIC_STREAM, CHAT: CHAT_STREAM, RESPONSES: RESPONSES_STREAM}
ASKED = RequestInfo(model="m", at=1)


def read(dialect: Dialect, *pieces: bytes, asked: RequestInfo = ASKED) -> list[Event]:
    reader = StreamReader(dialect, asked)
    return [event for piece in pieces for event in reader.feed(piece)] + reader.end()


def written(dialect: Dialect, events: list[Event], asked: RequestInfo = ASKED) -> bytes:
    into = writer(dialect, asked)
    return b"".join(into.write(event) for event in events)


def plain(answer: ModelAnswer) -> list[tuple[str, ...]]:
    """The content of an answer, without what differs between dialects."""
    reply: list[tuple[str, ...]] = []
    for part in answer.parts:
        match part:
            case ToolCallPart():
                reply.append((part.name, json.dumps(json.loads(part.input), sort_keys=True)))
            case TextPart() | ThinkingPart():
                reply.append((type(part).__name__, part.text))
    return reply


SAID = [
    ("ThinkingPart", "Let me see."),
    ("TextPart", "Grüße, Ada 🙂"),
    ("Read", '{"file_path": "a"}'),
    ("Bash", '{"command": "ls"}'),
]


@pytest.mark.parametrize("source", PROVIDER_DIALECTS)
@pytest.mark.parametrize("target", PROVIDER_DIALECTS)
def test_a_stream_says_the_same_in_every_dialect(source, target):
    there = collect_answer(read(target, written(target, read(source, STREAMS[source]))))
    assert (plain(there), there.stop) == (SAID, StopReason.CALLS)
    assert (there.usage.cache_read, there.usage.output) == (500, 42)
    assert there.usage.input + there.usage.cache_write == 40


@pytest.mark.parametrize("dialect", PROVIDER_DIALECTS)
def test_a_stream_may_be_cut_at_any_byte(dialect):
    stream = STREAMS[dialect]
    whole = read(dialect, stream)
    assert isinstance(whole[-1], AnswerEnded)
    for at in range(len(stream) + 1):
        assert read(dialect, stream[:at], stream[at:]) == whole
    assert read(dialect, *(stream[at : at + 1] for at in range(len(stream)))) == whole


@given(
    dialect=some.sampled_from(PROVIDER_DIALECTS),
    cuts=some.lists(some.integers(0, 6000), max_size=12),
    end=some.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_stream_may_be_cut_anywhere_and_have_any_kind_of_line(dialect, cuts, end):
    stream = STREAMS[dialect].replace(b"\n", end.encode())
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    pieces = [stream[one:other] for one, other in itertools.pairwise(places)]
    assert read(dialect, *pieces) == read(dialect, STREAMS[dialect])


@pytest.mark.parametrize("dialect", PROVIDER_DIALECTS)
def test_what_is_cut_off_ends_with_an_error_and_never_with_an_end(dialect):
    stream = STREAMS[dialect]
    last = stream.rstrip().rindex(b"\n\n") if dialect is not CHAT else stream.index(b'"finish_reason": "tool_calls"')
    for at in range(0, last, 7):
        events = read(dialect, stream[:at])
        assert isinstance(events[-1], AnswerFailed)
        assert not any(isinstance(event, AnswerEnded) for event in events)


@pytest.mark.parametrize("dialect", PROVIDER_DIALECTS)
def test_every_piece_is_passed_on_when_it_comes(dialect):
    """Nothing is gathered: each delta gives its growth at once."""
    reader, seen = StreamReader(dialect, ASKED), 0
    for event in STREAMS[dialect].split(b"\n\n")[:-1]:
        grown = [one for one in reader.feed(event + b"\n\n") if isinstance(one, PartGrew)]
        seen += len(grown)
        if b"Ada" in event and b"delta" in event:
            assert [one.text for one in grown] == ["Ada 🙂"]
    assert seen == 7


texts = some.text(min_size=1, max_size=30)
names = some.text("abcXYZ_-09", min_size=1, max_size=64)
inputs = some.dictionaries(texts, some.one_of(texts, some.integers(-9, 9), some.none(), some.booleans()), max_size=3)


@some.composite
def answers(draw: Any) -> ModelAnswer:
    parts: list[Any] = []
    if draw(some.booleans()):
        parts.append(ThinkingPart(text=draw(texts), signature="EqQB=="))
    if draw(some.booleans()):
        parts.append(TextPart(text=draw(texts)))
    for number in range(draw(some.integers(0, 3))):
        parts.append(ToolCallPart(id=f"call_{number}", name=draw(names), input=json.dumps(draw(inputs))))
    calls = any(isinstance(part, ToolCallPart) for part in parts)
    stop = (
        StopReason.CALLS if calls else draw(some.sampled_from([StopReason.END, StopReason.LENGTH, StopReason.REFUSAL]))
    )
    usage = TokenCounts(input=draw(some.integers(0, 10**6)), output=7, cache_read=draw(some.integers(0, 10**6)))
    return ModelAnswer(id="resp_1", model="m", parts=tuple(parts), stop=stop, usage=usage)


@given(answer=answers(), dialect=some.sampled_from(PROVIDER_DIALECTS))
def test_an_answer_survives_the_way_there_and_back_whole_and_streamed(answer, dialect):
    whole = read_answer(dialect, json.loads(json.dumps(write_answer(dialect, answer, ASKED))), ASKED)
    streamed = collect_answer(read(dialect, written(dialect, list(events_of(answer)))))
    for one in (whole, streamed):
        assert plain(one) == plain(answer)
        assert (one.stop, one.usage, one.model) == (answer.stop, answer.usage, answer.model)


STOPS = [
    (StopReason.END, "end_turn", "stop", "completed"),
    (StopReason.LENGTH, "max_tokens", "length", "incomplete"),
    (StopReason.REFUSAL, "refusal", "content_filter", "incomplete"),
    (StopReason.SEQUENCE, "stop_sequence", "stop", "completed"),
    (StopReason.PAUSE, "pause_turn", "stop", "completed"),
    (StopReason.CALLS, "tool_use", "tool_calls", "completed"),
]


@pytest.mark.parametrize(("stop", "anthropic", "chat", "responses"), STOPS)
def test_why_it_stopped_is_said_in_every_dialect(stop, anthropic, chat, responses):
    answer = ModelAnswer(id="i", model="m", parts=(TextPart(text="x"),), stop=stop)
    assert write_answer(ANTHROPIC, answer, ASKED)["stop_reason"] == anthropic
    assert write_answer(CHAT, answer, ASKED)["choices"][0]["finish_reason"] == chat
    assert write_answer(RESPONSES, answer, ASKED)["status"] == responses
    assert f'"stop_reason":"{anthropic}"'.encode() in written(ANTHROPIC, list(events_of(answer)))
    assert f'"finish_reason":"{chat}"'.encode() in written(CHAT, list(events_of(answer)))
    assert f"event: response.{responses}".encode() in written(RESPONSES, list(events_of(answer)))


ERRORS = {
    ANTHROPIC: sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    CHAT: sse({"error": {"message": "Overloaded", "type": "server_error", "code": "server_is_overloaded"}}),
    RESPONSES: sse(
        {"type": "response.failed", "response": {"error": {"code": "server_is_overloaded", "message": "Overloaded"}}}
    ),
}


@pytest.mark.parametrize("source", PROVIDER_DIALECTS)
@pytest.mark.parametrize("target", PROVIDER_DIALECTS)
def test_an_error_in_the_middle_is_said_in_every_dialect(source, target):
    head = STREAMS[source][: STREAMS[source].index(b"\n\n", 600) + 2]
    (*_, failed) = read(target, written(target, read(source, head + ERRORS[source])))
    assert isinstance(failed, AnswerFailed)
    assert (failed.error.kind, failed.error.message) == (ModelErrorKind.OVERLOADED, "Overloaded")


@pytest.mark.parametrize("dialect", PROVIDER_DIALECTS)
@pytest.mark.parametrize(
    "garbage",
    [b"data: {half", b"data: 7\n\n", b"data: []\n\n", b"<html>no</html>", b"\x00\xff\xfe\n\n", b"", b"data: \n\n"],
)
def test_garbage_ends_with_an_error(dialect, garbage):
    (*_, failed) = read(dialect, garbage)
    assert isinstance(failed, AnswerFailed)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", PROVIDER_DIALECTS)
def test_an_event_of_ten_megabytes_passes_and_one_without_end_does_not(dialect):
    answer = ModelAnswer(id="i", model="m", parts=(TextPart(text="x" * (10 << 20)),), stop=StopReason.END)
    stream = written(dialect, list(events_of(answer)))
    pieces = [stream[at : at + (1 << 20)] for at in range(0, len(stream), 1 << 20)]
    assert len(plain(collect_answer(read(dialect, *pieces)))[0][1]) == 10 << 20
    (*_, failed) = read(dialect, b"data: ", *[b"x" * (1 << 20)] * 40)
    assert isinstance(failed, AnswerFailed)


def test_a_chat_provider_may_mix_the_pieces_of_its_calls():
    def chunk(*calls: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"id": "c", "model": "m", "choices": [{"delta": {"tool_calls": calls}, "finish_reason": finish}]}

    one = {"index": 0, "id": "a", "function": {"name": "Read", "arguments": '{"x":'}}
    other = {"index": 1, "id": "b", "function": {"name": "Bash", "arguments": '{"y":'}}
    rest = [{"index": 0, "function": {"arguments": "1}"}}, {"index": 1, "function": {"arguments": "2}"}}]
    stream = sse(chunk(one, other), chunk(*reversed(rest)), chunk(finish="stop"), "[DONE]")
    for dialect in PROVIDER_DIALECTS:
        there = collect_answer(read(dialect, written(dialect, read(CHAT, stream))))
        assert plain(there) == [("Read", '{"x": 1}'), ("Bash", '{"y": 2}')]
        assert there.stop is StopReason.CALLS


def test_calls_without_id_or_number_get_them():
    def chunk(name: str) -> dict[str, Any]:
        call = {"id": name, "function": {"name": name, "arguments": "{}"}}
        return {"choices": [{"delta": {"tool_calls": [call]}}]}

    ends = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    there = collect_answer(read(CHAT, sse(chunk("one"), chunk("two"), ends)))
    assert [part.name for part in there.parts if isinstance(part, ToolCallPart)] == ["one", "two"]
    assert there.model == "m"
    nameless = {"message": {"tool_calls": [{"function": {"name": "x"}}]}, "finish_reason": "stop"}
    (call,) = read_answer(CHAT, {"choices": [nameless]}, ASKED).parts
    assert isinstance(call, ToolCallPart)
    assert (bool(call.id), call.input) == (True, "{}")


def test_a_tool_of_free_text_gets_its_text_back():
    asked = RequestInfo(model="m", free=frozenset(["apply_patch"]))
    call = ToolCallPart(id="call_1", name="apply_patch", input='{"input": "*** Begin\\nPatch"}')
    answer = ModelAnswer(id="i", model="m", parts=(call,), stop=StopReason.CALLS)
    (item,) = write_answer(RESPONSES, answer, asked)["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin\nPatch")
    stream = written(RESPONSES, list(events_of(answer)), asked)
    assert b'"delta":"*** Begin\\nPatch"' in stream
    assert b"function_call_arguments" not in stream


def test_shortened_names_are_the_callers_own_again():
    asked = RequestInfo(model="m", names={"short": "long"})
    body = {"id": "c", "choices": [{"message": {"tool_calls": [{"id": "1", "function": {"name": "short"}}]}}]}
    (call,) = read_answer(CHAT, body, asked).parts
    assert isinstance(call, ToolCallPart)
    assert call.name == "long"


@pytest.mark.parametrize("dialect", PROVIDER_DIALECTS)
@pytest.mark.parametrize("body", [{}, {"choices": []}, {"content": 7, "output": 7}])
def test_an_answer_that_is_none_is_refused(dialect, body):
    with pytest.raises(UnreadableMessage):
        read_answer(dialect, body, ASKED)


def test_a_failed_response_is_an_error():
    with pytest.raises(ModelFailed, match="too long"):
        read_answer(RESPONSES, {"id": "r", "status": "failed", "error": {"message": "too long"}}, ASKED)


def test_a_beginning_tells_what_was_read_from_the_cache():
    begun = read(ANTHROPIC, ANTHROPIC_STREAM)[0]
    assert isinstance(begun, AnswerStarted)
    assert (begun.usage.input, begun.usage.cache_read) == (10, 500)
