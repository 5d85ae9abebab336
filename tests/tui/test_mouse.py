"""A click selects what is under it, in every list of every screen: with borders, titles and scrolling."""

from __future__ import annotations

import pytest
from textual.geometry import Offset

from legion.tui.screens.menu import LISTS
from legion.tui.screens.place import PLACES
from legion.tui.screens.ticket import TABS
from legion.tui.widgets.lines import RowLine
from legion.tui.widgets.row_list import RowList
from tests.support.board import Board
from tests.tui.driving import Shown, drive, opened
from tests.tui.test_every_key import prepared

WIDE, NARROW = (100, 18), (60, 20)
USUAL = {"places": WIDE, "tabs": NARROW, "lists": WIDE, "menu": NARROW}
"""Each list at one size; `make soak` has all at both."""
CASES = [
    pytest.param(size, part, id=f"{size[0]}x{size[1]}-{part}", marks=() if USUAL[part] == size else pytest.mark.soak)
    for size in (WIDE, NARROW)
    for part in USUAL
]


def lists_of(ui: Shown) -> list[RowList]:
    found = [one for one in ui.app.screen.query(RowList) if not isinstance(one, RowLine) and one.display]
    return [one for one in found if one.region.height > 0 and one.has_keys and one.is_on_screen]


def drawn(ui: Shown, rows: RowList, y: int) -> str:
    """What a person sees in that line of the screen, as wide as the list's content."""
    x, width = rows.content_region.x, rows.scrollable_content_region.width
    strips = ui.app.screen._compositor.render_strips()
    return strips[y].crop(x, x + width).text.rstrip()


async def click_rows(ui: Shown, rows: RowList, *, edges: bool) -> int:
    """The first and last rows that can be selected, and the edges: a border or a title would shift them."""
    clicked, keyed = 0, {row.text for row in rows.rows if row.key}
    lines = [y for y in range(rows.content_region.y, rows.content_region.bottom) if drawn(ui, rows, y) in keyed]
    around = (rows.region.y, rows.region.bottom - 1) if edges else ()
    for y in sorted({*around, *lines[:1], *lines[-1:]}):
        seen, before = drawn(ui, rows, y), rows.selected
        meant = {row.key for row in rows.rows if row.text == seen}
        await ui.pilot.click(offset=Offset(rows.content_region.x + 1, y))
        await ui.pilot.pause()
        if y not in lines:
            assert rows.selected == before, f"a click on {seen!r} moved the selection"
        else:
            assert rows.selected in meant, f"a click on {seen!r} selected {rows.selected!r}"
            clicked += 1
    return clicked


async def click_everything(ui: Shown) -> int:
    await ui.settled()
    clicked = 0
    for rows in lists_of(ui):
        clicked += await click_rows(ui, rows, edges=True)
        if rows.max_scroll_y:
            rows.action_last()
            await ui.pilot.pause()
            clicked += await click_rows(ui, rows, edges=False)
    return clicked


@pytest.mark.parametrize(("size", "part"), CASES)
def test_a_click_selects_the_row_under_it_in_every_list_of_every_screen(board: Board, size: tuple[int, int], part: str):
    prepared(board)

    async def work() -> None:
        async with opened(board, size=size) as ui:
            await ui.until(lambda: ui.app.store.graph.value is not None)
            for place in PLACES if part == "places" else ():
                ui.app.go(place)
                assert await click_everything(ui) or place == "usage", place
            for tab in TABS if part == "tabs" else ():
                ui.app.open_ticket(2, tab)
                await click_everything(ui)
            for name in LISTS if part == "lists" else ():
                ui.app.go("board")
                ui.app.open_catalog(name)
                await click_everything(ui)
            if part == "menu":
                await ui.press("ctrl+p")
                assert await click_everything(ui)

    drive(work)
