"""Several tickets at once, marked with Space and named in one question; clicks on the lines at the bottom."""

from __future__ import annotations

from textual.geometry import Offset

from legion.client.text.board import fault_of
from legion.client.text.terminal import width
from legion.tui.widgets.lines import KeyLine, RowLines
from legion.tui.widgets.row_list import RowList
from tests.support.board import Board
from tests.tui.driving import Shown, drive, opened


def states(board: Board) -> list[str]:
    return [one.state for one in board.service.status(board.cwd, False).tickets]


def column(ui: Shown, line: RowList, words: str) -> Offset:
    """The place on the screen where the line says that."""
    text = line.rows[0].text
    return Offset(line.region.x + width(text[: text.index(words)]), line.region.y)


def test_what_is_marked_is_stopped_after_one_question_that_names_it(board: Board):
    for id in (1, 2, 3):
        board.put(id, f"Part {id}", "queued")

    async def work() -> None:
        async with opened(board) as ui:
            await ui.shows("#1  Part 1", "#3  Part 3")
            await ui.press("space", "space")
            await ui.shows("2 tickets are marked.", "s stop")
            assert ui.rows("RowList.tickets").marked == {"1", "2"}
            await ui.press("s")
            await ui.shows("Stop 2 tickets?", "#1 Part 1", "#2 Part 2")
            await ui.press("escape")
            assert states(board) == ["queued"] * 3
            await ui.press("escape")
            await ui.until(lambda: "marked" not in ui.text)
            await ui.press("g", "space", "G", "space", "s", "y")
            await ui.until(lambda: states(board) == ["stopped", "queued", "stopped"], "two that are stopped")
            await ui.until(lambda: "are marked" not in ui.text)

    drive(work)


def test_what_needs_the_person_is_first_and_wide_with_its_key(board: Board):
    board.put(1, "Short", "failed", reason="the check `test` is red: " + "expected 3, found 4 " * 3)
    board.put(2, "Works", "working")
    board.ask(3, ticket=2)

    async def work() -> None:
        async with opened(board, "squad", size=(120, 30)) as ui:
            await ui.shows("Needs you 2", "r tries again: the check `test` is red: expected 3", "asks you (3 answers)")
            needs = ui.rows("#needs")
            assert needs.region.y == 1
            assert needs.region.width == 120
            assert needs.has_focus, "no agent prints: Enter opens what needs the person"

    drive(work)


def test_a_click_on_the_footer_presses_its_key_and_one_on_the_next_step_does_it(board: Board):
    board.put(1, "Short", "failed", reason="red")

    async def work() -> None:
        async with opened(board) as ui:
            await ui.shows("1 ticket failed.", "? help")
            footer = ui.app.screen.query_one(KeyLine)
            await ui.pilot.click(offset=column(ui, footer, "filter"))
            await ui.shows("Filter: words")
            await ui.press("escape")
            step = ui.app.screen.query_one("#next", RowLines)
            await ui.until(lambda: ui.app.screen.query_one(KeyLine).rows[0].cells)
            await ui.pilot.click(offset=Offset(2, step.region.y))
            await ui.shows("It failed: r tries again")

    drive(work)


def test_a_filter_that_can_match_nothing_says_so():
    assert fault_of("login #3 state:fail epic: label:x http://x") == ""
    assert fault_of("foo:bar").startswith("there is no foo:")
    assert "queued" in fault_of("state:bogus")
