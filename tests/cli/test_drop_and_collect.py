"""`legion drop --ended` and `legion collect --dry-run`."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import update

from legion.store.database import schema
from tests.support.board import Board


def test_drop_ended_takes_all_that_ended_off_the_board_but_what_others_wait_for(legion, board: Board):
    board.put(1, state="done")
    board.put(2, state="failed")
    board.put(3, state="stopped", after=[2])
    board.put(4, state="failed")
    board.put(5, after=[4])
    board.put(6, state="working")
    ended = legion("drop", "--ended")
    assert ended.out == "3 ended tickets are off the board. Still needed or being stopped: 4.\n"
    assert sorted(board.tickets) == [4, 5, 6]
    assert json.loads(legion("drop", "--ended", "--json").out)["tickets"] == []


@pytest.mark.parametrize("words", [["drop"], ["drop", "1", "--ended"]])
def test_drop_takes_one_ticket_or_all_that_ended(legion, board: Board, words):
    board.put(1, state="done")
    ended = legion(*words)
    assert (ended.code, "legion drop --ended" in ended.err) == (2, True)
    assert list(board.tickets) == [1]


def test_a_dry_run_of_collect_says_what_would_come_and_moves_nothing(legion, board: Board):
    assert legion("collect", "--dry-run").out == "main already contains all landed work.\n"
    with board.store.write() as tx:
        tx.execute(update(schema.projects).values(target=board.change))
    before = board.repository.fingerprint()
    ended = legion("collect", "--dry-run")
    assert ended.out == "main would get 1 new commit.\n"
    assert f"main: {board.base[:9]} to {board.change[:9]}, 1 commit, 1 file." in ended.err
    assert board.repository.fingerprint() == before
    with board.store.write() as tx:
        tx.execute(update(schema.projects).values(target=board.base))
    assert legion("collect", "--dry-run", "--wait").code == 2
