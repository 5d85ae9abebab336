"""Usage is read from the passing stream, wherever it is cut, and every request gets a line in the ledger."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.gateway.counting.counters import BodyCounter, StreamCounter, TokenCounts
from tests.gateway.upstream import STOP, delta, event, start, text

STREAM = (
    start(
        "claude-opus-5", input_tokens=3, output_tokens=1, cache_read_input_tokens=1000, cache_creation_input_tokens=20
    )
    + event("ping")
    + text('not a "usage" nor {"type":"message_delta","usage":{"output_tokens":999}}')
    + b'event: message_delta\r\ndata: {"type":"message_delta","usage":{"output_tokens":42,"input_tokens":null}}\r\n\r\n'
    + STOP
)
USAGE = TokenCounts(input=3, output=42, cache_read=1000, cache_write=20)


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_usage_is_found_wherever_the_stream_is_cut(cuts):
    counter = StreamCounter()
    marks = [0, *sorted(cuts), len(STREAM)]
    for begin, end in pairwise(marks):
        counter.feed(STREAM[begin:end])
    counter.end()
    assert counter.summary.usage == USAGE
    assert (counter.summary.model, counter.summary.complete, counter.summary.error) == ("claude-opus-5", True, "")


def test_usage_is_found_after_a_line_that_is_longer_than_any_we_keep():
    counter = StreamCounter()
    long = text("w" * 5_000_000)
    for at in range(0, len(long), 65536):
        counter.feed(long[at : at + 65536])
    counter.feed(delta(output_tokens=8))
    assert counter.summary.usage.output == 8


@given(st.binary(max_size=200))
def test_no_bytes_break_the_counting(garbage):
    for counter in (StreamCounter(), BodyCounter()):
        counter.feed(b'data: {"usage":' + garbage)
        counter.feed(b"\n" + garbage)
        counter.end()
        assert counter.summary.usage == TokenCounts()


def test_writes_that_last_an_hour_are_told_apart():
    counter = BodyCounter()
    lasting = {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6}
    counter.feed(json.dumps({"usage": {"cache_creation_input_tokens": 10, "cache_creation": lasting}}).encode())
    counter.end()
    assert counter.summary.usage == TokenCounts(cache_write=10, cache_write_1h=6)


@pytest.mark.parametrize("reply", ["sk-ant-SECRET", "", None, 7, "x" * 100])
def test_what_is_no_word_for_an_error_is_not_kept(reply):
    counter = BodyCounter()
    counter.feed(json.dumps({"type": "error", "error": {"type": reply}}).encode())
    counter.end()
    assert counter.summary.error == "unknown_error"


def test_a_stream_is_counted_for_its_run(gateway, upstream):
    def script(exchange):
        usage = {"input_tokens": 3, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 20}
        exchange.begin(start("claude-sonnet-4-5-20250929", output_tokens=1, **usage), text("hi"))
        exchange.piece(delta(output_tokens=42))
        exchange.piece(STOP)
        exchange.finish()

    upstream.script = script
    run, token = gateway.grant(ticket=7, project=2, agent="5f0c")
    gateway.ask(token)
    entry = gateway.entry(run)
    assert (entry.run, entry.ticket, entry.project, entry.agent, entry.provider) == (run, 7, 2, "5f0c", "main")
    assert (entry.model, entry.status) == ("claude-sonnet-4-5-20250929", 200)
    assert (entry.input, entry.output, entry.cache_read, entry.cache_write) == (3, 42, 1000, 20)
    assert entry.usd == pytest.approx((3 * 3 + 42 * 15 + 1000 * 0.3 + 20 * 3.75) / 1e6)
    assert entry.first_ms is not None
    assert 0 <= entry.first_ms <= entry.ms
    assert (entry.cut, entry.error) == (False, "")


def test_a_model_without_a_price_is_counted_in_tokens(gateway, upstream):
    def script(exchange):
        exchange.begin(start("glm-9", input_tokens=5), delta(output_tokens=6), STOP)
        exchange.finish()

    upstream.script = script
    run, token = gateway.grant()
    gateway.ask(token, b'{"model":"glm-9"}')
    assert (gateway.entry(run).usd, gateway.entry(run).output) == (None, 6)


def test_a_stream_that_the_provider_breaks_off_is_cut_for_the_caller_too(gateway, upstream):
    def script(exchange):
        exchange.begin(start(input_tokens=11, output_tokens=2), text("half"))
        exchange.drop()

    upstream.script = script
    run, token = gateway.grant()
    with gateway.asking(token) as answer, pytest.raises(http.client.IncompleteRead):
        answer.read()
    entry = gateway.entry(run)
    assert (entry.cut, entry.error, entry.status, entry.input, entry.output) == (True, "upstream_gone", 200, 11, 2)
    assert entry.usd == pytest.approx((11 * 3 + 2 * 15) / 1e6)


def test_a_stream_without_its_last_event_is_no_whole_answer(gateway, upstream):
    def script(exchange):
        exchange.begin(start(input_tokens=11))
        exchange.finish()

    upstream.script = script
    run, token = gateway.grant()
    assert gateway.ask(token)[0] == 200
    assert (gateway.entry(run).cut, gateway.entry(run).error) == (True, "unfinished")


def test_an_error_inside_a_stream_is_told(gateway, upstream):
    def script(exchange):
        exchange.begin(start(input_tokens=11), event("error", error={"type": "overloaded_error", "message": "x"}))
        exchange.finish()

    upstream.script = script
    run, token = gateway.grant()
    gateway.ask(token)
    assert (gateway.entry(run).status, gateway.entry(run).error) == (200, "overloaded_error")


@pytest.mark.parametrize(
    ("last", "outcome"), [(b"", (True, "caller_gone")), (STOP, (False, ""))], ids=["early", "late"]
)
def test_a_caller_that_hangs_up_is_counted_and_the_provider_learns_of_it(gateway, upstream, last, outcome):
    """Some have heard all and do not wait for the end of the stream."""
    closed = threading.Event()

    def script(exchange):
        exchange.begin(start(input_tokens=11, output_tokens=2) + last)
        if exchange.wait_until_closed():
            closed.set()

    upstream.script = script
    run, token = gateway.grant()
    with gateway.asking(token) as answer:
        answer.read1(65536)
    assert closed.wait(60)
    entry = gateway.entry(run)
    assert ((entry.cut, entry.error), entry.input, entry.output) == (outcome, 11, 2)


def test_an_answer_that_is_compressed_all_the_same_passes_and_says_that_it_was_not_counted(gateway, upstream):
    packed = gzip.compress(b'{"usage":{"input_tokens":3}}')
    upstream.script = lambda exchange: exchange.reply(200, packed, content_encoding="gzip")
    run, token = gateway.grant()
    assert gateway.ask(token) == (200, packed)
    assert (gateway.entry(run).error, gateway.entry(run).input) == ("usage_unreadable", 0)
