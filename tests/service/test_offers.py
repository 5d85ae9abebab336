"""What a ticket's line offers is what the service does: every state and every operation, over the real service."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from legion.domain.tickets.attendance import Attendance, AttendMode
from legion.domain.tickets.offers import OFFERS
from legion.domain.tickets.ticket import Park, ParkReason, State
from legion.service.operations import Service
from legion.store.board import tickets
from legion.store.work import attendances
from legion.wire.controls import EditTicket
from legion.wire.errors import LegionError, NotFound, Retryable, StateConflict
from legion.wire.operations import Operations
from legion.wire.questions import MessageText
from legion.wire.table import rows
from legion.wire.tickets import RewindTo
from tests.support.board import Board

CALLS: dict[str, Callable[[Service], object]] = {
    "edit": lambda service: service.edit(1, EditTicket(priority=3)),
    "rewind": lambda service: service.rewind(1, RewindTo(to="1")),
    "tell": lambda service: service.tell(1, MessageText(text="wait")),
}
BY_NUMBER = (
    "stop", "retry", "pause_ticket", "resume_ticket", "drop", "review", "bounce", "land", "undo", "interrupt",
    "submit_ticket",
)  # fmt: skip
TRIED = (*CALLS, *BY_NUMBER)
NEEDS_A_PROGRAM = {"attach", "shell", "checkout", "push", "diff"}
"""Their tests are in tests/scenarios."""
LATER = {
    "undo": "is left in the target",
    "rewind": "has no run 1",
    "tell": "has just ended",
    "interrupt": "has just ended",
    "submit_ticket": "nothing to submit yet",
}
"""What the service says of an operation that the state allows, where this board lacks what it needs next."""
STATES = [state.value for state in State if state is not State.DRAFT]


@pytest.fixture(scope="module")
def one_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    one = Board(tmp_path_factory.mktemp("offers"))
    yield one
    one.close()


@pytest.fixture
def board(one_board: Board) -> Board:
    one_board.reset()
    return one_board


def offers(board: Board) -> list[str]:
    return board.service.ticket(1).ticket.offers


def refusal(board: Board, name: str) -> str:
    """Why the service does not do it; empty where it does, or would with a program at work."""
    try:
        CALLS[name](board.service) if name in CALLS else getattr(board.service, name)(1)
    except (StateConflict, NotFound, Retryable) as error:
        return "" if LATER.get(name, "\0") in error.message else error.message
    except LegionError as error:
        pytest.fail(f"{name}: {error.message}")
    return ""


def test_every_offer_is_an_operation_of_a_ticket_and_is_tried_here():
    table = rows(Operations)
    assert {name for name in OFFERS if "{id}" not in table[name].path} == set()
    assert set(TRIED) | NEEDS_A_PROGRAM == set(OFFERS)


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("state", STATES)
def test_the_service_does_what_is_offered_and_refuses_what_is_not(board: Board, state: str, name: str):
    board.put(1, "One", state)
    offered = name in offers(board)
    assert offered == (refusal(board, name) == ""), offers(board)


@pytest.mark.parametrize("name", TRIED)
def test_a_checkpoint_offers_no_agent_and_no_change(board: Board, name: str):
    board.put(1, "One", "queued", checkpoint=True)
    assert (name in offers(board)) == (refusal(board, name) == "")


@pytest.mark.parametrize("back_to", ["working", "checking", "reviewing", "landing"])
@pytest.mark.parametrize("name", ["review", "bounce", "land", "resume_ticket"])
def test_a_ticket_that_asks_offers_what_its_stage_allows(board: Board, back_to: str, name: str):
    board.put(1, "One", back_to)
    with board.store.write() as tx:
        tickets.move(tx, 1, Park(ParkReason.QUESTION, "it asks"))
    assert (name in offers(board)) == (refusal(board, name) == "")


@pytest.mark.parametrize("name", ["tell", "interrupt"])
@pytest.mark.parametrize("driver", ["claude", "command", "terminal", ""])
def test_what_the_driver_cannot_do_is_not_offered(board: Board, driver: str, name: str):
    """Without a driver the program has not started yet."""
    board.put(1, "One", "working")
    board.run(1, ended=False, driver=driver)
    can = {"claude": ("tell", "interrupt"), "terminal": ("interrupt",)}.get(driver, ())
    assert (name in offers(board)) == (name in can)
    assert (refusal(board, name) == "") == (name in can)


@pytest.mark.parametrize(("driver", "opens"), [("claude", True), ("terminal", True), ("command", False), ("", True)])
def test_attach_is_offered_for_an_agent_with_a_terminal_form_or_one_that_starts(board: Board, driver: str, opens: bool):
    board.put(1, "One", "working")
    board.run(1, ended=False, driver=driver)
    assert ("attach" in offers(board)) == opens


@pytest.mark.parametrize("mode", AttendMode)
def test_only_a_ticket_that_a_person_works_on_is_submitted(board: Board, mode: AttendMode):
    board.put(1, "One", "working")
    with board.store.write() as tx:
        attendances.put(tx, Attendance(ticket=1, mode=mode))
    assert ("submit_ticket" in offers(board)) == (mode is AttendMode.PERSON)
    assert (refusal(board, "submit_ticket") == "") == (mode is AttendMode.PERSON)
