"""Many agents at once: nothing is mixed up, nothing waits for another, everything is counted."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

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
    for number, (run, said) in answers.items():
        assert said.count(f' of {number}"'.encode()) == 6
        entry = gateway.entry(run)
        assert (entry.input, entry.output, entry.cut) == (number, number * 2, False)
