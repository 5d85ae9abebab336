"""`legion web`: links, devices, and the sentences about addresses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.cli.system import web
from tests.cli.conftest import Ended
from tests.support.attacks import Attacker, Door, attack
from tests.support.board import Board

Run = Callable[..., Ended]


@pytest.fixture(autouse=True)
def _with_page(board: Board) -> None:
    record = json.loads(board.data.daemon_record.read_text())
    board.data.daemon_record.write_text(json.dumps(record | {"mcp": f"{record['url']}/mcp"}))


def test_the_link_carries_a_code_in_its_fragment(legion: Run, board: Board):
    ended = legion("web", "--no-open")
    url, _, code = ended.out.strip().partition("/#code=")
    assert ended.code == 0
    assert url.startswith("http://127.0.0.1:")
    board.callers.accept_device(code, name="here", host="127.0.0.1:1")
    assert "here" in legion("web", "devices").out


def test_json_has_the_link_and_opens_nothing(legion: Run):
    answer = json.loads(legion("web", "--json").out)
    assert answer["schema"] == "legion.web/1"
    assert "/#code=" in answer["url"]


def test_a_device_is_listed_and_revoked(legion: Run, board: Board):
    assert "No browser" in legion("web", "devices").out
    code = legion("web", "--no-open", "--read-only", "--name", "the\x1b[31m phone").out.strip().partition("=")[2]
    board.callers.accept_device(code, name="other", host="127.0.0.1:1")
    shown = legion("web", "devices").out
    assert "read-only" in shown
    assert "\x1b" not in shown
    assert legion("web", "revoke", "1").code == 0
    assert legion("web", "revoke", "1").code == 3
    assert "legion web devices" in legion("web", "revoke", "1").err


@pytest.mark.parametrize("words", [("revoke",), ("revoke", "1", "--all"), ("-h", "127.0.0.1"), ("-h", "localhost")])
def test_what_makes_no_sense_gets_a_sentence(legion: Run, words: tuple[str, ...]):
    ended = legion("web", *words)
    assert ended.code == 2
    assert ended.err.endswith(".\n")


def test_the_code_for_a_camera_is_square_and_has_a_quiet_border():
    lines = web._qr("http://127.0.0.2:6680/#code=abcdefghijklmnopqrstuv")
    assert len({len(line) for line in lines}) == 1
    assert len(lines) == -(-len(lines[0]) // 2)
    assert set(lines[0]) == {"█"}
    assert all(line.startswith("██") and line.endswith("██") for line in lines)


@attack(Attacker.PROGRAM, Door.SECRETS)
def test_other_programs_get_a_token_that_opens_the_tools_alone(legion: Run, board: Board):
    ended = legion("plugin", "mcp")
    url, stdio, over_http = ended.out.splitlines()
    assert stdio.endswith(" plugin mcp --stdio")
    assert url in over_http
    assert str(board.data.token) not in ended.out
    file = Path(json.loads(legion("plugin", "mcp", "--json").out)["token_file"])
    assert (str(file) in over_http, file.stat().st_mode & 0o777) == (True, 0o600)
    assert board.callers.known(file.read_text().strip()).only_tools
