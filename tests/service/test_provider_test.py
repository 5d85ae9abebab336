"""`legion provider test` against a gateway that hangs: the answer comes within seconds and says what to do."""

from __future__ import annotations

import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

from legion.gateway.files.address import GatewayAddress
from legion.service.providers.probe import gateway_trouble


def address(port: int) -> GatewayAddress:
    return GatewayAddress(url=f"http://127.0.0.1:{port}", pid=os.getpid(), release="1")


def test_a_gateway_that_accepts_and_never_answers_is_named_soon():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        found = gateway_trouble(address(silent.getsockname()[1]), patience=0.2)
    assert time.monotonic() - started < 10
    assert found is not None
    assert f"`kill -9 {os.getpid()}`" in found.error


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def test_a_gateway_that_answers_is_no_trouble():
    with HTTPServer(("127.0.0.1", 0), Healthy) as server:
        answering = threading.Thread(target=server.handle_request, daemon=True)
        answering.start()
        assert gateway_trouble(address(server.server_port), patience=20) is None
        answering.join(20)


def test_a_gateway_that_is_gone_is_trouble_too():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert gateway_trouble(address(port)) is not None
