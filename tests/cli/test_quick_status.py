"""The fast path of `legion status` prints what the complete command prints, or nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from legion.cli import quick_status
from legion.wire.agents import HireAgent
from tests.cli.conftest import Ended
from tests.support.board import Board

IMPORTED = """
import sys
from legion.cli.quick_status import status
assert status([]) == 0
SLOW = ("click", "rich", "pydantic", "pathlib", "legion.wire.dispatch")
sys.exit(" ".join(name for name in SLOW if name in sys.modules) or 0)
"""


def test_it_prints_what_the_complete_command_prints(
    board: Board, legion: Callable[..., Ended], capsys: pytest.CaptureFixture[str]
):
    board.put(1, "First", "working")
    board.put(2, "Second \x1b[31mred", "failed", reason="a check failed")
    board.service.hire(HireAgent(task="Lead.", name="ada", cwd=board.cwd))
    assert quick_status.status([]) == 0
    quick = capsys.readouterr()
    complete = legion("status")
    assert (_ageless(quick.out), quick.err) == (_ageless(complete.out), complete.err)
    assert "ada" in quick.out


def _ageless(screen: str) -> str:
    return re.sub(r"up \d+s", "up", screen)


@pytest.mark.parametrize("words", [["--json"], ["-w"], ["3"], ["--all"], ["--help"]])
def test_what_is_not_plain_is_left_to_the_complete_command(board: Board, words: list[str], capsys):
    assert quick_status.status(words) is None
    assert capsys.readouterr() == ("", "")


def test_without_a_daemon_the_complete_command_runs(tmp_path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setenv("LEGION_DATA_DIR", str(tmp_path))
    assert quick_status.status([]) is None
    assert capsys.readouterr() == ("", "")


def test_it_imports_nothing_of_weight(board: Board):
    ended = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, cwd=board.cwd, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_full_disk_behind_the_output_gets_a_sentence(board: Board):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ended = subprocess.run(
            [sys.executable, "-m", "legion", "status"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=board.cwd,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (1, "The system refused: No space left on device.\n")
