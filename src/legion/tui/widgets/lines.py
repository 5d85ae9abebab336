"""One-line widgets that every place has: places and connection, the next step, counts, keys."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Size
from textual.message import Message

from legion.client.text.rows import Row, fit
from legion.client.text.terminal import Cell, Colour, width
from legion.client.text.tickets import in_ascii
from legion.tui.keys import BY_ID, Key, KeyContext, shown_key
from legion.tui.widgets.row_list import RowList

_ALWAYS = ("menu", "help")
_RESERVE = 21
"""Columns of the keys that are always shown."""


class RowLine(RowList, can_focus=False):
    """One row. A click on it is reported, with the cell that was hit."""

    DEFAULT_CSS = """
    RowLine { height: 1; overflow: hidden hidden; }
    """

    class Clicked(Message):
        def __init__(self, line: RowLine, cell: Cell, key: str) -> None:
            super().__init__()
            self.line = line
            self.cell = cell
            self.key = key
            """That of the row."""

        @property
        def control(self) -> RowLine:
            return self.line

    def show(self, row: Row) -> None:
        self.put([row])

    def _resize(self, at_end: bool) -> None:
        self.virtual_size = Size(self.size.width, 1)

    def on_click(self, event: events.Click) -> None:
        event.prevent_default()
        row = self.rows[event.y] if event.y < len(self.rows) else Row(())
        at = 0
        for cell in row.cells:
            at += width(cell.text)
            if event.x < at:
                self.post_message(self.Clicked(self, cell, row.key))
                return


class RowLines(RowLine):
    """As many lines as its text takes."""

    def show_all(self, rows: Sequence[Row]) -> None:
        self.put(rows)
        if self.styles.height is None or self.styles.height.value != len(rows):
            self.styles.height = len(rows)

    def _resize(self, at_end: bool) -> None:
        self.virtual_size = Size(self.size.width, len(self.rows))


class KeyLine(RowLine):
    """The footer: what the keys do here, as many as fit. It is made from the bindings that are active.

    A click on one presses that key.
    """

    def on_mount(self) -> None:
        self._waits = False
        self._spots: list[tuple[int, str]] = []
        """Keys, each with the column behind what is said of it."""
        self.screen.bindings_updated_signal.subscribe(self, lambda screen: self._renew_soon())

    def _renew_soon(self) -> None:
        """Once, however often the bindings changed before the next frame."""
        if not self._waits:
            self._waits = True
            self.call_after_refresh(self._renew_once)

    def _renew_once(self) -> None:
        self._waits = False
        self.renew()

    def on_resize(self) -> None:
        super().on_resize()
        self.renew()

    def renew(self) -> None:
        if not self.is_attached or not self.size.width or self.app.screen is not self.screen:
            return
        found: dict[str, set[str]] = {}
        for key, active in self.screen.active_bindings.items():
            id = active.binding.id
            if id in BY_ID and BY_ID[id].footer and active.enabled:
                found.setdefault(id, set()).add(key)
        ordered = sorted((BY_ID[id] for id in found), key=_order)
        cells: list[Cell] = []
        self._spots = []
        left = self.size.width
        for one in ordered:
            usual = next((key for key in one.keys if key in found[one.id]), min(found[one.id]))
            text, label = shown_key(usual), f" {one.label}  "
            # Menu and help always have a place: they name the keys that have none.
            reserve = 0 if one.action in _ALWAYS else _RESERVE
            if width(text + label) <= left - reserve or one.action in _ALWAYS:
                cells += [Cell(text, Colour.CYAN), Cell(label, Colour.DIM)]
                left -= width(text + label)
                self._spots.append((self.size.width - left, usual))
        self.show(Row(fit(cells, self.size.width)))

    def on_click(self, event: events.Click) -> None:
        event.prevent_default()
        pressed = next((key for end, key in self._spots if event.x < end), "")
        if pressed and self.rows[0].cells:
            self.app.simulate_key(pressed)


def _order(key: Key) -> tuple[bool, bool, bool]:
    """Keys of the place first, then those that work everywhere, menu and help last."""
    return key.context is KeyContext.EVERYWHERE, key.action in _ALWAYS, key.action == "help"


class AsciiFilter(LineFilter):
    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(in_ascii(text), style, control) for text, style, control in segments]
