"""The log of events by kind and by day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from legion.domain.errors import BadInput
from legion.runner.journal import Journal
from legion.store.work import runs
from tests.store.making import add_ticket
from tests.support.board import Board


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    folder: Path = tmp_path_factory.mktemp("log")
    one = Board(folder)
    with one.store.write() as tx:
        add_ticket(tx, project=1)
    yield one
    one.close()


def kinds(board: Board, kinds: str = "", since: str = "", until: str = "") -> list[str]:
    return [line.kind for line in board.service.history(board.cwd, kinds=kinds, since=since, until=until).lines]


def day(offset: int) -> str:
    return (datetime.now(UTC).date() + timedelta(days=offset)).isoformat()


def test_events_are_found_by_kind_and_by_the_part_before_the_dot(board: Board):
    assert {"project.added", "project.trusted", "ticket.created"} <= set(kinds(board))
    assert kinds(board, kinds="ticket") == ["ticket.created"]
    assert set(kinds(board, kinds="project.trusted, ticket.created")) == {"project.trusted", "ticket.created"}
    assert kinds(board, kinds="ticket.moved") == []


def test_events_are_found_by_days_both_of_which_count(board: Board):
    assert kinds(board, since=day(-1), until=day(1)) == kinds(board)
    assert kinds(board, since=day(2)) == []
    assert kinds(board, until=day(-2)) == []
    assert board.service.history(board.cwd, last=1, kinds="project").omitted == len(kinds(board, kinds="project")) - 1


def test_an_unknown_kind_and_a_text_that_is_no_day_are_refused(board: Board):
    with pytest.raises(BadInput, match=r"no event of the kind 'tickets'\. The kinds begin with: agent, "):
        kinds(board, kinds="tickets")
    with pytest.raises(BadInput, match="'yesterday' is no day"):
        kinds(board, until="yesterday")


def test_the_last_lines_of_a_ticket_are_those_of_the_whole_log_and_all_others_are_counted(tmp_path: Path):
    board = Board(tmp_path)
    try:
        board.put(1, state="working")
        for _ in range(2):
            run = board.run(1, ended=False)
            with board.store.read() as tx:
                journal = Journal(board.context.data.runs / runs.get(tx, run).name, lambda: None)
            for number in range(30):
                journal.append("message", text=f"line {number}")
            board.end_run(run)
        everything = board.service.history(board.cwd, ticket=1)
        assert everything.omitted == 0
        assert sum(line.kind == "message" for line in everything.lines) == 60
        for last in (1, 7, 45):
            some = board.service.history(board.cwd, ticket=1, last=last)
            assert some.lines == everything.lines[-last:]
            assert some.omitted + last == len(everything.lines)
            assert some.cursor == everything.cursor
        assert board.service.history(board.cwd, ticket=1, after=everything.cursor).lines == []
    finally:
        board.close()
