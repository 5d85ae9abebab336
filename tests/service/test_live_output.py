"""Live output: one request for the agents at work, answered when one of them has printed, started or ended."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.jobs.run.job import run_dir
from legion.runner.spec import RunFolder
from legion.store.work import runs
from legion.wire.history import FollowOutput, LiveOutput
from tests.support.board import Board

LONG = 20.0


@pytest.fixture(scope="module")
def made() -> Iterator[Board]:
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        board = Board(Path(folder))
        yield board
        board.close()


@pytest.fixture
def board(made: Board) -> Board:
    made.reset()
    return made


def ask(board: Board, timeout: float = LONG, **seen: int) -> LiveOutput:
    return board.service.output(FollowOutput(cwd=board.cwd, seen={name[1:]: at for name, at in seen.items()}), timeout)


def test_a_run_that_is_new_to_the_caller_is_answered_at_once_with_its_last_lines(board: Board):
    board.put(1, state="working")
    run = board.run(1, "x" * 5000 + "\nlast line\n", ended=False)
    found = ask(board)
    assert [(one.run, one.ticket, one.agent) for one in found.running] == [(run, 1, "")]
    assert [one.text for one in found.pieces] == ["last line\n"]
    assert found.pieces[0].next_offset == 5011


def test_only_what_was_printed_since_is_sent_and_half_a_character_is_left_for_the_next_time(board: Board):
    board.put(1, state="working")
    run = board.run(1, "one\n", ended=False)
    with RunFolder(run_dir_of(board, run)).output.open("ab") as file:
        file.write("zwei ä".encode()[:-1])
    found = ask(board, r1=4)
    assert [(one.offset, one.next_offset, one.text) for one in found.pieces] == [(4, 9, "zwei ")]


def test_a_caller_far_behind_gets_the_end_from_a_new_line_on(board: Board):
    board.put(1, state="working")
    board.run(1, "a\n" + "line\n" * 20_000, ended=False)
    (piece,) = ask(board, r1=2).pieces
    assert piece.offset > 2
    assert piece.text.startswith("line\n")
    assert piece.next_offset == 2 + 5 * 20_000


def test_it_waits_until_a_run_prints(board: Board):
    board.put(1, state="working")
    run = board.run(1, "one\n", ended=False)
    answers: list[LiveOutput] = []
    waiting = threading.Thread(target=lambda: answers.append(ask(board, r1=4)), daemon=True)
    waiting.start()
    assert board.news.waiting.acquire(timeout=LONG)
    assert not answers
    board.print(run, "two\n")
    waiting.join(LONG)
    assert [one.text for one in answers[0].pieces] == ["two\n"]


def test_it_returns_when_a_run_has_ended(board: Board):
    board.put(1, state="working")
    board.run(1, "one\n", ended=True)
    assert ask(board, r1=4) == LiveOutput(running=[], pieces=[])


def test_without_news_it_returns_when_the_time_is_up(board: Board):
    began = time.monotonic()
    assert ask(board, timeout=0.05) == LiveOutput(running=[], pieces=[])
    assert time.monotonic() - began < LONG


def test_a_tool_of_the_agent_is_its_activity(board: Board):
    board.put(1, state="working")
    run = board.run(1, ended=False)
    entries = [("called", {"tool": "Edit", "input": "app/\nlogin.py"}), ("returned", {})]
    lines = [
        {"version": 1, "number": number, "time": 5.0, "kind": kind, **facts}
        for number, (kind, facts) in enumerate(entries, 1)
    ]
    RunFolder(run_dir_of(board, run)).journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (line,) = ask(board).running
    assert (line.activity, line.activity_at) == ("Edit app/ login.py", 5.0)


def run_dir_of(board: Board, run: int) -> Path:
    with board.store.read() as tx:
        return run_dir(board.context, runs.get(tx, run))


def test_it_returns_when_the_daemon_ends(tmp_path: Path):
    board = Board(tmp_path)
    board.put(1, state="working")
    run = board.run(1, "one\n", ended=False)
    answers: list[LiveOutput] = []
    waiting = threading.Thread(target=lambda: answers.append(ask(board, timeout=10 * LONG, r1=4)))
    waiting.start()
    assert board.news.waiting.acquire(timeout=LONG)
    board.news.close()
    waiting.join(LONG)
    assert [one.run for one in answers[0].running] == [run]
    board.close()
