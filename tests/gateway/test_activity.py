"""The daemon reads which runs have an open request."""

from __future__ import annotations

import threading

import psutil

from legion.gateway.accounting.activity import open_requests
from tests.gateway.gateways import eventually, running
from tests.gateway.upstream import STOP, delta, start, text


def test_a_run_whose_model_thinks_is_told_of_until_it_has_answered(gateway, upstream):
    go = threading.Event()

    def script(exchange):
        exchange.begin(start(input_tokens=1), text("I think."))
        go.wait(60)
        exchange.piece(delta(output_tokens=1) + STOP)
        exchange.finish()

    upstream.script = script
    run, token = gateway.grant()
    gateway.grant()
    eventually(lambda: open_requests(gateway.folder), lambda found: found == {})
    with gateway.asking(token) as answer:
        eventually(lambda: open_requests(gateway.folder), lambda found: set(found or ()) == {run})
        go.set()
        answer.read()
    eventually(lambda: open_requests(gateway.folder), lambda found: found == {})


def test_a_gateway_that_was_killed_tells_nothing(tmp_path, upstream):
    go = threading.Event()

    def script(exchange):
        exchange.begin(start(input_tokens=1), text("I think."))
        go.wait(60)

    upstream.script = script
    with running(tmp_path / "gateway") as gateway:
        gateway.provide(upstream.url)
        _, token = gateway.grant()
        with gateway.asking(token):
            eventually(lambda: open_requests(gateway.folder), bool)
            psutil.Process(gateway.pid).kill()
            eventually(lambda: open_requests(gateway.folder), lambda found: found is None)
        go.set()
