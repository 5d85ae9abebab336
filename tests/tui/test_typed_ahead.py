"""Keys that are typed faster than the screen follows reach what the keys before them opened."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from textual import events
from textual.widgets import Input, TextArea

from legion.tui.screens.forms import Form
from legion.tui.screens.ticket import TicketScreen
from tests.support.board import Board
from tests.tui.driving import Shown, drive, opened
from tests.tui.test_places import fill


def typed(ui: Shown, keys: Iterable[str]) -> None:
    """All of them at once, without waiting for any."""
    for key in keys:
        ui.app.post_message(events.Key(key, key if len(key) == 1 else None))


@pytest.mark.parametrize("place", ["squad", "board", "queue"])
def test_letters_typed_while_a_form_opens_are_in_the_form(board: Board, place: str):
    fill(board)

    async def work() -> None:
        async with opened(board, place) as ui:
            typed(ui, ["n", *"Dqd1R", "tab", *"sqN"])
            ui.app.post_message(events.Paste("pasted"))
            await ui.until(lambda: isinstance(ui.app.screen, Form))
            fields = [one for one in ui.app.screen.query("Input, TextArea") if isinstance(one, Input | TextArea)]
            texts = lambda: [one.value if isinstance(one, Input) else one.text for one in fields]  # noqa: E731
            await ui.until(lambda: texts()[:2] == ["Dqd1R", "sqNpasted"], "the form's texts")

    drive(work)


def test_keys_typed_while_a_ticket_a_question_or_a_line_opens(board: Board):
    fill(board)

    async def work() -> None:
        async with opened(board) as ui:
            await ui.press("t")
            await ui.until(lambda: ui.app.store.graph.value is not None)
            ui.rows("#column-0 .tickets").select("4")
            await ui.pilot.pause()
            typed(ui, ["d", "n", "slash", *"drop", "enter", "slash", "escape", "enter", "l", "l"])
            await ui.until(lambda: isinstance(ui.app.screen, TicketScreen))
            await ui.until(lambda: ui.app.screen.tab == "diff")  # type: ignore[attr-defined]
            assert "drop" not in board.callers.asked

    drive(work)


def test_a_key_whose_widget_is_gone_holds_up_none(board: Board):
    fill(board)

    async def work() -> None:
        async with opened(board, "queue") as ui:
            typed(ui, ["n", *"ab", "escape", "2", "n", "escape", "1", "H", "escape", "3", "question_mark", "escape"])
            await ui.until(lambda: getattr(ui.app.screen, "NAME", "") == "inbox", "the inbox")

    drive(work)
