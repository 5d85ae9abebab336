"""Starting races: lanes are tickets with a share of the budget, and what cannot race is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.domain.tickets.ticket import State
from legion.wire.errors import BadInput, LegionError, NotFound, StateConflict
from legion.wire.tickets import NewRace
from tests.support.board import Board

THREE = NewRace(count=3)


@pytest.fixture(scope="module")
def one_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    made = Board(tmp_path_factory.mktemp("races"))
    yield made
    made.close()


@pytest.fixture
def board(one_board: Board) -> Board:
    one_board.reset()
    return one_board


def test_a_race_makes_equal_lanes_with_a_share_of_the_budget(board: Board):
    board.put(1, "Add a form", command="", budget=6.0, model="opus", climbs=True)
    page = board.service.race(1, THREE)
    assert (page.origin, page.title, page.winner) == (1, "Add a form", None)
    assert [(lane.ticket, lane.model, lane.budget, lane.standing) for lane in page.lanes] == [
        (number, "opus", 2.0, "running") for number in (1, 2, 3)
    ]
    assert [one.spec.climbs for one in board.tickets.values()] == [False] * 3
    assert {one.spec.title for one in board.tickets.values()} == {"Add a form"}
    assert board.service.race_page(3).lanes == page.lanes


def test_a_race_that_combines_keeps_a_share_of_the_budget_for_the_last_lane(board: Board):
    board.put(1, "Add a form", command="", budget=6.0)
    page = board.service.race(1, NewRace(count=2, combine=True))
    assert [lane.budget for lane in page.lanes] == [2.0, 2.0]


def test_each_lane_has_its_program_and_model(board: Board):
    board.put(1, command="", model="opus")
    page = board.service.race(1, NewRace(drivers=["claude", "codex"]))
    assert [(lane.driver, lane.model) for lane in page.lanes] == [("claude", "opus"), ("codex", "opus")]
    board.put(9, command="")
    page = board.service.race(9, NewRace(models=["sonnet", "opus"]))
    assert [(lane.driver, lane.model) for lane in page.lanes] == [("", "sonnet"), ("", "opus")]


def test_a_stopped_ticket_starts_again_as_a_lane(board: Board):
    board.put(1, command="", state="stopped")
    board.service.race(1, THREE)
    assert board.tickets[1].state is State.QUEUED


@pytest.mark.parametrize(
    ("ticket", "wanted", "error", "words"),
    [
        ({"command": ""}, NewRace(), BadInput, "2 to 8 lanes"),
        ({"command": ""}, NewRace(drivers=["claude", "no-such"]), BadInput, "no-such"),
        ({"command": "make it"}, THREE, BadInput, "a command of its own"),
        ({"command": "", "asks": True}, NewRace(drivers=["claude", "codex"]), BadInput, "cannot ask"),
        ({"command": "", "state": "working"}, THREE, StateConflict, "legion stop 1"),
        ({"command": "", "state": "done"}, THREE, StateConflict, "is done"),
        ({"command": "", "checkpoint": True}, THREE, StateConflict, "no agent"),
    ],
    ids=["no lanes", "no program", "a command", "no questions", "working", "done", "checkpoint"],
)
def test_what_cannot_race_is_refused_and_nothing_changes(
    board: Board, ticket: dict[str, object], wanted: NewRace, error: type[LegionError], words: str
):
    board.put(1, **ticket)  # type: ignore[arg-type]
    before = board.tickets
    with pytest.raises(error, match=words):
        board.service.race(1, wanted)
    assert board.tickets == before


def test_no_ticket_races_twice_and_one_without_a_race_says_so(board: Board):
    board.put(1, command="")
    board.service.race(1, THREE)
    with pytest.raises(StateConflict, match="in a race already"):
        board.service.race(2, THREE)
    board.put(9, command="")
    with pytest.raises(NotFound, match="in no race"):
        board.service.race_page(9)
