"""MCP's own conformance suite, all scenarios for servers, against Legion's tools.

Scenarios that need what Legion does not offer (resources, prompts, logging, sampling, sessions, tools of the suite's
own example server) fail as listed, and no other may. The suite comes from npm. It knows no tokens, so one is added to
what it sends.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from legion.api.app import make_app
from tests.support.board import Board

PACKAGES = ("@modelcontextprotocol/conformance@0.1.16", "node@22")
REASONS = {
    "there is nothing to read but what tools return: no resources": (
        *("resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read"),
        *("resources-subscribe", "resources-unsubscribe"),
    ),
    "the plugin brings commands, so there are no prompts, nor anything to complete": (
        *("prompts-list", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource"),
        *("prompts-get-with-image", "completion-complete"),
    ),
    "no session is kept, so nothing is sent to a client but the answer to its call": (
        *("logging-set-level", "tools-call-with-logging", "tools-call-with-progress", "tools-call-sampling"),
        *("tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"),
        *("server-sse-polling", "server-sse-multiple-streams"),
    ),
    "it calls tools of the suite's own example server, and Legion's answer with JSON alone": (
        *("tools-call-image", "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content"),
        "json-schema-2020-12",
    ),
}
"""Why each of these scenarios fails. The suite also complains about one that passes after all."""
NOT_OFFERED = {name for names in REASONS.values() for name in names}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of the suite, installed for this test alone."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: MCP's conformance suite was not run.")
    folder = tmp_path_factory.mktemp("npm")
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
    if subprocess.run(install, capture_output=True, timeout=400, check=False).returncode != 0:
        pytest.skip("MCP's conformance suite cannot be tried: npm reaches no registry.")
    program = folder / "node_modules"
    return [str(program / "node/bin/node"), str(program / "@modelcontextprotocol/conformance/dist/index.js"), "server"]


@contextmanager
def with_token(board: Board) -> Iterator[str]:
    """The address of Legion's tools for a client that sends no token: each request gets that of an agent."""
    app = make_app(board.callers, token="the person's", hosts=("127.0.0.1", "localhost"))
    bearer = (b"authorization", f"Bearer {board.token_of_agent()[1]}".encode())

    async def as_agent(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "headers": [*scope["headers"], bearer]}, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(as_agent, log_level="critical", lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        board.news.close()
        server.should_exit = True
        thread.join(20)
        listener.close()


@pytest.mark.soak
def test_the_whole_server_suite_fails_only_where_legion_offers_nothing(suite: list[str], tmp_path: Path):
    baseline = tmp_path / "expected.yml"
    baseline.write_text("server:\n" + "".join(f"  - {one}\n" for one in sorted(NOT_OFFERED)))
    board = Board(tmp_path / "board")
    with with_token(board) as url:
        command = [*suite, "--url", url, "--suite", "all", "--expected-failures", str(baseline)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    board.close()
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-4000:]
