"""Plans in the terminal UI: one that waits is seen at once, and decided without another terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.domain.questions import QuestionKind
from legion.domain.tickets.ticket import State
from tests.support.board import Board
from tests.tui.driving import drive, opened
from tests.tui.planned import answers
from tests.tui.test_places import fill


def sent(board: Board, name: str) -> object:
    return board.callers.sent[board.callers.asked.index(name)]["wanted"]


def test_a_plan_that_waits_is_in_the_squad_the_inbox_and_the_coloured_line(board: Board):
    fill(board)
    board.callers.instead = answers()

    async def work() -> None:
        async with opened(board, "squad", size=(120, 30)) as ui:
            await ui.shows(
                "Plan P2 waits for you: People can log in.", "7 opens the plans", "P2  ready, 2 tickets to approve"
            )
            await ui.press("3")
            await ui.shows("1 thing waits for you.", "P2  plan, People can log in.", "holds up 2 tickets")
            await ui.press("enter")
            await ui.shows("Tables", "is large", "$1.50", "10m", "a → b", "make test", "a approve")
            assert "P1" in ui.text

    drive(work)


def test_a_plan_and_a_failure_are_decided_in_the_inbox_by_two_keys_each(board: Board):
    board.callers.instead = answers()

    async def work() -> None:
        async with opened(board, "inbox", size=(120, 30)) as ui:
            await ui.shows("y approves it, n sends it back")
            await ui.press("y")
            await ui.shows("Approve P2 (People can log in.)? Its tickets are dispatched at once.", "findings are left.")
            assert "approve_plan" not in board.callers.asked
            await ui.press("enter")
            await ui.until(lambda: "approve_plan" in board.callers.asked)
            assert sent(board, "approve_plan").anyway  # type: ignore[attr-defined]
            await ui.press("n")
            await ui.shows("What should be different in P2")
            await ui.press(*"no y in it", "enter")
            await ui.until(lambda: "reject_plan" in board.callers.asked)
            assert sent(board, "reject_plan").why == "no y in it"  # type: ignore[attr-defined]

    drive(work)
    del board.callers.instead["inbox"]
    board.put(4, "Rate limits", "failed")

    async def again() -> None:
        async with opened(board, "inbox", size=(120, 30)) as ui:
            await ui.shows("#4  failed, Rate limits", "y tries it again, n removes it")
            await ui.press("n")
            await ui.shows("Remove #4 Rate limits from the board?")
            await ui.press("escape", "y")
            await ui.shows("Try #4 Rate limits again?")
            await ui.press("enter")
            await ui.until(lambda: board.tickets[4].state is not State.FAILED)
            await ui.shows("Nothing waits for you.")
            board.put(5, "Late one", "failed")
            await ui.shows("#5  failed, Late one")

    drive(again)


def test_a_change_is_sent_back_with_words_whose_letters_are_keys(board: Board):
    board.put(4, "Rate limits", "parked")
    board.ask(9, ticket=4, kind=QuestionKind.GATE, words="Shall it land?", choices=("land", "back", "stop"))

    async def work() -> None:
        async with opened(board, "inbox", size=(120, 30)) as ui:
            await ui.shows("y land, n back")
            await ui.press("n")
            await ui.shows("`back` to question 9 of ticket 4 of shop, Rate limits")
            await ui.press(*"land y n 1 s")
            assert board.question(9).settled_at is None
            await ui.press("enter")
            await ui.until(lambda: board.question(9).settled_at)
            assert (board.question(9).choice, board.question(9).why) == ("back", "land y n 1 s")

    drive(work)


def test_all_or_some_tickets_are_approved_after_one_question(board: Board):
    board.callers.instead = answers()

    async def work() -> None:
        async with opened(board, "plans", size=(120, 30)) as ui:
            await ui.shows("[ ] a  Tables", "[ ] b  A page")
            await ui.press("a")
            await ui.shows("Approve 2 tickets of P2 (People can log in)?", "1 finding")
            await ui.press("n", "enter", "space")
            await ui.shows("[x] a  Tables")
            await ui.press("a")
            await ui.shows("Approve a of P2")
            assert "approve_plan" not in board.callers.asked
            await ui.press("y")
            await ui.until(lambda: "approve_plan" in board.callers.asked)
            wanted = sent(board, "approve_plan")
            assert (wanted.tickets, wanted.anyway) == (["a"], True)  # type: ignore[attr-defined]

    drive(work)


def test_a_plan_is_sent_back_with_a_reason_or_edited(board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    board.callers.instead = answers()

    async def work() -> None:
        async with opened(board, "plans", size=(120, 30)) as ui:
            await ui.shows("[ ] a  Tables")
            await ui.press("b", *"smaller", "enter")
            await ui.until(lambda: "reject_plan" in board.callers.asked)
            assert sent(board, "reject_plan").why == "smaller"  # type: ignore[attr-defined]
            await ui.press("d")
            await ui.shows("Drop P2 (People can log in)?")
            await ui.press("y")
            await ui.until(lambda: "drop_plan" in board.callers.asked)

    drive(work)


def test_a_failed_plan_offers_another_try_and_no_approval(board: Board):
    board.callers.instead = answers("failed")

    async def work() -> None:
        async with opened(board, "plans", size=(120, 30)) as ui:
            await ui.shows("failed: no model", "r retry")
            await ui.press("a")
            assert "Approve" not in ui.text
            await ui.press("r")
            await ui.until(lambda: "retry_plan" in board.callers.asked)

    drive(work)


def test_a_goal_is_planned_from_everywhere(board: Board):
    board.callers.instead = answers()

    async def work() -> None:
        async with opened(board, "queue") as ui:
            await ui.press("plus")
            await ui.shows("Plan a goal")
            await ui.press("ctrl+s")
            await ui.shows("Write the goal")
            await ui.press(*"Login", "ctrl+s")
            await ui.until(lambda: "plan" in board.callers.asked)
            assert sent(board, "plan").goal == "Login"  # type: ignore[attr-defined]

    drive(work)
