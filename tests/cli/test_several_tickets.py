"""`legion stop`, `retry` and `drop` with several numbers."""

from __future__ import annotations

import json

import pytest

from legion.wire.errors import StateConflict
from tests.support.board import Board


@pytest.mark.parametrize(
    ("command", "state", "then"), [("stop", "working", "stopped"), ("retry", "failed", "queued"), ("drop", "done", "")]
)
def test_a_command_takes_several_numbers_and_answers_once(legion, board: Board, command: str, state: str, then: str):
    for id in (1, 2, 3):
        board.put(id, state=state)
    ended = legion(command, "1", "#2", "3", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["tickets"] == [1, 2, 3]
    assert [one.state.value for one in board.tickets.values()] == ([then] * 3 if then else [])


def test_a_number_that_is_refused_does_not_hold_up_the_others(legion, board: Board):
    board.put(1, state="working")
    board.put(2, state="done")
    board.put(3, state="working")
    board.put(4, state="done")
    ended = legion("stop", "1", "2", "3", "4")
    assert ended.code == StateConflict.exit_code
    assert [line.partition(";")[0] for line in ended.out.splitlines()] == ["Ticket 1 is stopped", "Ticket 3 is stopped"]
    assert "Ticket 2 is done" in ended.err
    assert "Ticket 4 is done" in ended.err
    assert board.tickets[3].state.value == "stopped"


def test_all_and_numbers_do_not_go_together(legion, board: Board):
    board.put(1, state="working")
    assert legion("stop", "all", "1").code == 2
    assert board.tickets[1].state.value == "working"
