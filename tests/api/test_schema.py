"""Every operation of the OpenAPI document with generated requests, on the real service: no answer is a mistake of ours.

Schemathesis makes requests that fit the document and some that do not, and every identity sends some of them to every
operation. Each is answered below 500, and with one sentence where it is refused. `make test` draws a fifth of the
operations, some of each method; `make soak` tries all, with as many requests as fit into some seconds for each.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error, response_schema_conformance

from legion.api.app import make_app
from legion.wire.operations import OPERATIONS
from legion.wire.orchestrate import OrchestrateOperations
from legion.wire.table import rows
from legion.wire.web import OfferDevice
from tests.support.board import Board
from tests.support.sampling import sampled

TOKEN = "a-token-for-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Host": "localhost"}
ROWS = {f"{row.method} {row.path}": row for row in (*OPERATIONS.values(), *rows(OrchestrateOperations).values())}
LEAVES_THE_PROCESS = {"try_provider", "begin_login", "finish_login", "open_web", "close_web", "add_forge"}
"""They start programs, open ports, or ask a provider or a forge."""
TRIED = sorted(label for label, row in ROWS.items() if row.name not in LEAVES_THE_PROCESS)
EACH = 8
"""Requests of each kind to an operation: one of each identity."""
MANY = 100
SECONDS = 4.0
"""For the many requests of one kind to one operation; one of each identity is sent in any case."""
AWAY = "192.168.1.5"
"""Where a browser is behind a plain network."""
Callers = list[dict[str, str]]


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    folder = tmp_path_factory.mktemp("schema")
    with pytest.MonkeyPatch.context() as patch:
        # A relative folder in a request starts here, and settings that a request writes stay here.
        patch.chdir(folder)
        patch.setenv("LEGION_CONFIG", str(folder / "config.toml"))
        patch.setenv("HOME", str(folder))
        one = Board(folder)
        one.put(1, "First", "done")
        one.put(2, "Second", "working", after=[1])
        one.put(3, "Third", "failed")
        one.run(1, "hello\n")
        yield one
        one.close()


@pytest.fixture(scope="module")
def callers(board: Board) -> Callers:
    """Every identity that sends headers."""
    known = [
        HEADERS,
        {"Authorization": f"Bearer {board.token_of_agent()[1]}", "Host": "localhost"},
        {"Authorization": f"Bearer {board.token_of_ticket(2)}", "Host": "localhost"},
        {"Host": "localhost"},
    ]
    for read_only, host in itertools.product((False, True), ("localhost", AWAY)):
        code = board.service.offer_device(OfferDevice(read_only=read_only)).code
        secret, _ = board.callers.accept_device(code, name="", host=host)
        known.append({"Legion-Device": secret, "Host": host})
    assert len(known) == EACH
    return known


@pytest.fixture(scope="module")
def document(board: Board) -> Any:
    app = make_app(board.callers, token=TOKEN, hosts=("localhost", AWAY))
    return schemathesis.openapi.from_asgi("/v1/openapi.json", app, headers=HEADERS)


def try_out(
    document: Any, board: Board, callers: Callers, label: str, examples: int, seconds: float = math.inf
) -> None:
    method, path = label.split(" ")
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        try:
            made = document[path][method].as_strategy(generation_mode=mode)
        except schemathesis.errors.SchemathesisError:
            continue
        asked = Asked(board, callers, seconds)
        run = settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(given(made)(asked.take))
        run()
        asked.complete()


class Asked:
    """The requests of one kind to one operation, each sent by the next identity."""

    def __init__(self, board: Board, callers: Callers, seconds: float) -> None:
        self._board = board
        self._callers = itertools.cycle(callers)
        self._left = len(callers)
        """Identities that have not asked."""
        self._until = time.monotonic() + seconds
        self._last: Any = None

    def take(self, case: Any) -> None:
        if self._left > 0 or time.monotonic() < self._until:
            self._ask(case)

    def complete(self) -> None:
        """Where there are few requests to make, the other identities send the last one, too."""
        while self._left > 0 and self._last is not None:
            self._ask(self._last)

    def _ask(self, case: Any) -> None:
        self._last, self._left = case, self._left - 1
        if ROWS[f"{case.operation.method.upper()} {case.operation.path}"].waits and isinstance(case.query, dict):
            case.query["timeout"] = 0
        if case.query and "cwd" in case.query and len(str(case.query["cwd"])) % 2:
            case.query["cwd"] = self._board.cwd
        answer = case.call(headers=next(self._callers))
        if not case.operation.path.startswith("/v1/"):
            # The routes of legion_cc answer in its own shapes.
            assert answer.status_code < 500, answer.content
            return
        case.validate_response(answer, checks=[not_a_server_error, response_schema_conformance])
        if answer.status_code >= 400:
            message = json.loads(answer.content)["message"]
            assert message.endswith((".", "?", "`")), message


@pytest.mark.parametrize("label", sampled(TRIED, len(TRIED) // 5, lambda label: label.split()[0]))
def test_no_generated_request_is_a_mistake_of_ours(document: Any, board: Board, callers: Callers, label: str):
    try_out(document, board, callers, label, EACH)


@pytest.mark.soak
@pytest.mark.parametrize("label", TRIED)
def test_many_generated_requests_are_answered(document: Any, board: Board, callers: Callers, label: str):
    try_out(document, board, callers, label, MANY, SECONDS)


def test_every_operation_of_the_document_is_tried_or_named(document: Any):
    found = {f"{method.upper()} {path}" for path in document for method in document[path]}
    others = {label for label, row in ROWS.items() if row.name in LEAVES_THE_PROCESS}
    # tests/api/test_orchestra.py has those of claude-orchestra.
    orchestra = {label for label in found if " /api/" in label}
    assert found - set(TRIED) - others - orchestra <= {"GET /health", "GET /v1/events"}
