"""Many agents at once: nothing is mixed up, nothing waits for another, everything is counted."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from legion.gateway.access.provider import ProviderDialect
from tests.gateway.dialects.bodies import ANTHROPIC_STREAM, CHAT_STREAM, CLAUDE_CODE
from tests.gateway.gateways import eventually
from tests.gateway.upstream import STOP, delta, start, text

AT_ONCE = 100


def test_a_hundred_slow_streams_run_side_by_side(gateway, upstream):
    """Each gets its second half only after all have had their first."""
    everybody = threading.Barrier(AT_ONCE)

    def script(exchange):
        number = json.loads(exchange.body)["number"]
        exchange.begin(start(input_tokens=number), text(f"first of {number}"))
        everybody.wait(60)
        for part in range(5):
            exchange.piece(text(f"part {part} of {number}"))
        exchange.piece(delta(output_tokens=number * 2) + STOP)
        exchange.finish()

    upstream.script = script

    def ask(number: int) -> tuple[str, bytes]:
        run, token = gateway.grant()
        body = json.dumps({"model": "claude-sonnet-4-5", "number": number}).encode()
        return run, gateway.ask(token, body)[1]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = dict(enumerate(pool.map(ask, range(1, AT_ONCE + 1)), 1))
    for number, (run, reply) in answers.items():
        assert reply.count(f' of {number}"'.encode()) == 6
        entry = gateway.entry(run)
        assert (entry.input, entry.output, entry.cut) == (number, number * 2, False)


@pytest.mark.parametrize("kind", [ProviderDialect.OPENAI_CHAT, ProviderDialect.ANTHROPIC])
@pytest.mark.parametrize("number", [100, pytest.param(1000, marks=pytest.mark.soak)])
def test_callers_who_leave_in_the_middle_leave_nothing_behind(gateway, upstream, number, kind):
    """Every connection to the provider is closed, every request is in the ledger, and memory does not grow."""
    stream = {ProviderDialect.OPENAI_CHAT: CHAT_STREAM, ProviderDialect.ANTHROPIC: ANTHROPIC_STREAM}[kind]
    closed = threading.Semaphore(0)

    def script(exchange):
        exchange.begin(stream[:900])
        if exchange.wait_until_closed():
            closed.release()

    gateway.provide(upstream.url, kind=kind)
    upstream.script = script
    run, token = gateway.grant()
    body = json.dumps(CLAUDE_CODE).encode()

    def leave(_: int) -> None:
        with gateway.asking(token, body) as answer:
            assert answer.read1()

    process = psutil.Process(gateway.pid)
    open_before = process.num_fds()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(leave, range(number // 2)))
        before = process.memory_info().rss
        list(pool.map(leave, range(number // 2)))
    for _ in range(number):
        assert closed.acquire(timeout=60)
    entries = gateway.entries(run, number)
    assert {one.error for one in entries} == {"caller_gone"}
    assert process.memory_info().rss - before < 10_000_000
    # A few stay open to be used again.
    assert eventually(process.num_fds, lambda found: found <= open_before + 10)
