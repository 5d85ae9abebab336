"""The canary: checks that stay green on an emptied source tree are reported, and each set of checks is tried once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.config.files.current import CurrentSettings
from legion.config.files.user import UserConfig
from legion.config.sections.evidence import ProtectionSettings
from legion.domain.events import EventKind
from legion.domain.tickets.ticket import Land
from legion.jobs.background.canary_runner import CanaryRunner
from legion.store import events
from legion.store.board import tickets
from legion.wire.projects import DoctorFinding
from tests.support.board import Board
from tests.support.repository import Repository

SEES = """\
[checks.test]
run = "for one in lib/*; do . ./$one; done; test $(price) = 7"
[checks.lint]
run = "true"
"""
BLIND = """\
[setup]
run = "mkdir -p deps/lib && echo 'price() { echo 7; }' > deps/lib/price.sh"
[checks.test]
run = "for one in deps/lib/*; do . ./$one; done; test $(price) = 7"
"""
COPIES = """\
[setup]
run = "mkdir -p deps && cp -r lib deps"
[checks.test]
run = "for one in deps/lib/*; do . ./$one; done; test $(price) = 7"
"""

Make = Callable[[str], Board]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Board] = []

    def board(config: str) -> Board:
        theirs = Repository(tmp_path / "shop", config)
        theirs.commit("source", {"lib/price.sh": "price() { echo 7; }\n", "docs/made.sh": "exit 1\n"})
        theirs.git("branch", "change")
        made.append(Board(tmp_path))
        return made[-1]

    yield board
    for one in made:
        one.context.launcher.close()
        one.close()


def finding(board: Board) -> DoctorFinding:
    (one,) = [found for found in board.service.doctor(board.cwd).findings if found.name == "checks see the code"]
    return one


def notes(board: Board) -> str:
    line = board.service.status(board.cwd, False).project
    assert line is not None
    return "\n".join(line.notes)


def tries(board: Board) -> list[dict[str, object]]:
    with board.store.read() as tx:
        return [dict(event.data) for event in events.after(tx, 0) if event.kind is EventKind.EMPTIED]


def test_a_check_that_tests_what_setup_installed_is_reported(make: Make):
    board = make(BLIND)
    assert (finding(board).ok, finding(board).detail) == (True, "not tried yet")
    CanaryRunner(board.context).run_due()
    found = finding(board)
    assert not found.ok
    assert found.detail == "`test` stays green when all 2 source files are empty, so it does not test this tree"
    assert "[setup]" in found.advice
    assert found.detail in notes(board)
    assert [one["green"] for one in tries(board)] == [{"test": True}]


def test_a_check_of_a_copy_that_setup_makes_is_not_blind(make: Make):
    """Setup reads what it copies, so it runs again for each change of that."""
    board = make(COPIES)
    CanaryRunner(board.context).run_due()
    assert finding(board).ok
    assert [one["green"] for one in tries(board)] == [{"test": False}]


def test_checks_that_notice_are_left_alone_with_the_linters_beside_them(make: Make):
    board = make(SEES)
    runner = CanaryRunner(board.context)
    runner.run_due()
    assert (finding(board).ok, notes(board)) == (True, "")
    assert [one["green"] for one in tries(board)] == [{"test": False, "lint": True}]
    # Neither this daemon nor the next tries the same checks again.
    runner.run_due()
    CanaryRunner(board.context).run_due()
    assert len(tries(board)) == 1


def test_a_project_whose_change_is_checked_or_lands_waits_with_the_canary(make: Make):
    board = make(SEES)
    runner = CanaryRunner(board.context)
    board.put(1, state="landing")
    runner.run_due()
    assert tries(board) == []
    with board.store.write() as tx:
        tickets.move(tx, 1, Land(board.change))
    runner.run_due()
    assert len(tries(board)) == 1


def test_a_check_that_is_red_on_the_target_shows_nothing_and_is_tried_on_the_next_target(make: Make):
    board = make('[checks.test]\nrun = "false"\n')
    runner = CanaryRunner(board.context)
    runner.run_due()
    runner.run_due()
    assert [one["green"] for one in tries(board)] == [{}]
    assert finding(board).detail == "not known: they fail on the target itself"


def test_a_person_may_switch_it_off(make: Make):
    board = make(BLIND)
    settings = UserConfig(protection=ProtectionSettings(canary=False))
    CanaryRunner(board_with(board, settings).context).run_due()
    assert tries(board) == []


def board_with(board: Board, settings: UserConfig) -> Board:
    object.__setattr__(board.context, "settings", CurrentSettings(settings))
    return board
