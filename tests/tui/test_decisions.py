"""What a key decides is what the person looked at: questions take no typed text, selections do not slide."""

from __future__ import annotations

import pytest

from legion.domain.questions import QuestionKind
from legion.tui.screens.prompts import Choice, YesNo
from legion.wire.tickets import Acted
from tests.support.attacks import Attacker, Door, attack
from tests.support.board import Board
from tests.tui.driving import Shown, drive, opened
from tests.tui.test_places import fill

ASKING = {"m": "land", "s": "stop", "c": "pause_ticket", "x": "interrupt"}
"""Keys of a ticket that ask, and what a yes sends."""


def prepared(board: Board) -> None:
    fill(board)
    board.put(12, "Fetch", "working")
    board.run(12, ended=False, driver="claude")
    for id in (3, 4):
        board.ask(id, words=f"May it fetch {id}?", kind=QuestionKind.CHANGE, choices=("land", "back"), fallback="back")
    done = Acted(tickets=[12], message="Done.")
    board.callers.instead = dict.fromkeys([*ASKING.values(), "answer"], done)


async def asked(ui: Shown) -> None:
    await ui.until(lambda: isinstance(ui.app.screen, YesNo), "a question")


@pytest.mark.parametrize("typed", ["yy", "yyyyyyyy", "yes, land it", "no", "y\n\n"])
def test_text_that_was_typed_blind_answers_no_question_of_the_inbox(board: Board, typed: str):
    prepared(board)

    async def work() -> None:
        async with opened(board, "inbox") as ui:
            await ui.shows("May it fetch 3?", "May it fetch 4?")
            keys = [{"\n": "enter", " ": "space", ",": "comma"}.get(letter, letter) for letter in typed]
            await ui.type_at_once(*keys)
            assert "answer" not in board.callers.asked

    drive(work)


def test_the_key_that_opened_a_question_does_not_say_yes_however_often_it_is_pressed(board: Board):
    prepared(board)

    async def work() -> None:
        async with opened(board, "inbox") as ui:
            await ui.shows("May it fetch 3?")
            await ui.press("y", "y", "y")
            await asked(ui)
            assert "answer" not in board.callers.asked
            await ui.press("enter")
            await ui.until(lambda: "answer" in board.callers.asked)
            assert board.callers.sent[board.callers.asked.index("answer")]["id"] == 3

    drive(work)


@pytest.mark.parametrize("key", ASKING)
def test_a_key_that_costs_work_asks_and_a_yes_in_the_middle_of_typing_is_none(board: Board, key: str):
    prepared(board)
    ticket = 3 if key == "m" else 12

    async def work() -> None:
        async with opened(board) as ui:
            ui.app.open_ticket(ticket)
            await ui.shows(f"#{ticket} ")
            await ui.until(lambda: ui.app.screen.ticket is not None)  # type: ignore[attr-defined]
            await ui.type_at_once(key, *"ystem", "space", "y", "enter")
            await asked(ui)
            assert ASKING[key] not in board.callers.asked
            await ui.until(lambda: ui.is_read)
            await ui.press("y")
            await ui.until(lambda: ASKING[key] in board.callers.asked)

    drive(work)


@attack(Attacker.AGENT, Door.KEYS)
def test_a_choice_is_no_answer_before_it_was_asked_about_whatever_is_typed_into_it(board: Board):
    prepared(board)

    async def work() -> None:
        async with opened(board, "inbox") as ui:
            await ui.shows("May it fetch 3?")
            await ui.type_at_once("e", "1")
            await ui.until(lambda: isinstance(ui.app.screen, Choice), "the choices")
            for key in ("1", "1", *"test is my sync", "space", "enter"):
                await ui.until(lambda: ui.is_read)
                assert isinstance(ui.app.screen, Choice), key
                await ui.press(key)
            await asked(ui)
            assert "answer" not in board.callers.asked
            await ui.until(lambda: ui.is_read)
            await ui.press("y")
            await ui.until(lambda: "answer" in board.callers.asked)

    drive(work)


@pytest.mark.parametrize("typing", [True, False])
def test_nothing_asks_by_itself_while_a_person_writes_to_the_leader(board: Board, typing: bool):
    fill(board)

    async def work() -> None:
        async with opened(board, "squad") as ui:
            if typing:
                ui.app.screen.query_one("#say").add_class("-shown")
                ui.app.screen.query_one("#say").focus()
            await ui.until(lambda: ui.app._is_free is not typing)

    drive(work)


def test_the_selection_goes_with_its_ticket_to_another_column(board: Board):
    fill(board)

    async def work() -> None:
        async with opened(board, size=(120, 30)) as ui:
            await ui.until(lambda: ui.app.store.graph.value is not None)
            await ui.press("l")
            assert ui.app.screen.ticket.id == 2  # type: ignore[attr-defined]
            board.service.pause_ticket(2)
            await ui.until(lambda: ui.app.store.tickets[2].state == "parked")
            await ui.settled()
            assert ui.app.screen.ticket.id == 2  # type: ignore[attr-defined]
            board.service.drop(5)
            board.service.drop(2)
            await ui.until(lambda: 2 not in ui.app.store.tickets)
            await ui.settled()
            assert ui.app.screen.ticket is None, "no other ticket takes its place by itself"  # type: ignore[attr-defined]
            await ui.press("j")
            assert ui.app.screen.ticket is not None  # type: ignore[attr-defined]

    drive(work)


def test_a_pane_that_ends_leaves_no_other_agent_under_the_keys(board: Board):
    fill(board)
    board.put(7, "Another", "working")
    runs = [board.run(ticket, "I look.\n", ended=False, driver="claude") for ticket in (2, 7)]

    async def work() -> None:
        async with opened(board, "squad", size=(140, 40)) as ui:
            await ui.shows("▌ #2 The HTTP side", "▌ #7 Another")
            assert ui.rows("#panes").selected == "2"
            board.end_run(runs[0])
            await ui.until(lambda: "▌ #2" not in ui.text)
            await ui.pilot.press("s", "x", "c")
            await ui.pilot.pause()
            assert not isinstance(ui.app.screen, YesNo)
            await ui.press("j", "s")
            await ui.shows("Stop #7 Another?")

    drive(work)
