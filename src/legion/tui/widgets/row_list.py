"""A scrolled list of rows with a selection. It draws only the lines that are visible, however many there are."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from legion.client.text.rows import Row
from legion.client.text.terminal import Colour
from legion.tui.keys import KeyContext
from legion.tui.widgets.bindings import bindings_of

_CLASSES = {colour: f"rows--{colour.name.lower()}" for colour in Colour}
_TINTS = {Colour.GREEN: "rows--tint-green", Colour.RED: "rows--tint-red"}


class RowList(ScrollView, can_focus=True, inherit_bindings=False):
    BINDINGS = bindings_of(KeyContext.LIST)
    COMPONENT_CLASSES = {*_CLASSES.values(), *_TINTS.values(), "rows--selected"}
    DEFAULT_CSS = """
    RowList {
        background: $background; color: $foreground; scrollbar-size: 1 1; overflow-x: hidden;
        scrollbar-background: $background; scrollbar-color: $surface-lighten-2;
        & > .rows--bold { text-style: bold; }
        & > .rows--dim { color: $text-muted; }
        & > .rows--red { color: $text-error; }
        & > .rows--green { color: $text-success; }
        & > .rows--yellow { color: $text-warning; }
        & > .rows--blue { color: $text-primary; }
        & > .rows--cyan { color: $text-accent; }
        & > .rows--tint-green { background: $success-muted; }
        & > .rows--tint-red { background: $error-muted; }
        & > .rows--selected { background: $primary-muted; }
        &:ansi > .rows--selected, &:nocolor > .rows--selected { text-style: reverse; }
        &:ansi > .rows--tint-green { background: ansi_default; color: ansi_green; }
        &:ansi > .rows--tint-red { background: ansi_default; color: ansi_red; }
    }
    """

    class Chosen(Message):
        """Enter or a double click on a row."""

        def __init__(self, rows: RowList, key: str, *, mouse: bool) -> None:
            super().__init__()
            self.rows = rows
            self.key = key
            self.mouse = mouse

        @property
        def control(self) -> RowList:
            return self.rows

    class Moved(Message):
        """Another row is selected."""

        def __init__(self, rows: RowList, key: str) -> None:
            super().__init__()
            self.rows = rows
            self.key = key

        @property
        def control(self) -> RowList:
            return self.rows

    def __init__(self, *, follow: bool = False, id: str | None = None, classes: str | None = None) -> None:
        """With `follow` it stays at the end while rows are added, until the person scrolls up."""
        super().__init__(id=id, classes=classes)
        self.rows: list[Row] = []
        self.selected = ""
        """The key of the selected row; empty also where that row is gone, until the person moves."""
        self._gap: int | None = None
        """Where the selected row was that is gone."""
        self.follow = follow
        self.always_marked = False
        """Whether the selection shows without the focus."""
        self.marked: frozenset[str] = frozenset()
        """Keys of rows that the person marked, to act on all of them."""
        self._looks: dict[tuple[Colour, bool, Colour], Style] = {}

    def put(self, rows: Sequence[Row]) -> None:
        """Show these instead. The selection stays on its key; where that is gone, no key acts on its neighbour."""
        if self.rows == rows:
            return
        before, old, selected = self._keys(), self.rows, self.selected
        at_end = self.is_at_end
        self.rows = list(rows)
        self._select_again(before)
        self._resize(at_end)
        if self.selected != selected:
            self.refresh()
        else:
            self._refresh_changed(old)

    def _refresh_changed(self, old: list[Row]) -> None:
        """Only the lines that differ and can be seen: drawing a line costs far more than comparing it."""
        top = self.scroll_offset.y
        for number in range(top, min(top + self.size.height, max(len(old), len(self.rows)))):
            if old[number : number + 1] != self.rows[number : number + 1]:
                self._redraw(number)

    def _redraw(self, number: int) -> None:
        """One row. In a box the lines are shifted by its border."""
        if self.gutter.top:
            self.refresh()
        else:
            self.refresh_line(number)

    def mark(self, keys: frozenset[str]) -> None:
        if keys != self.marked:
            self.marked = keys
            self.refresh()

    @property
    def is_at_end(self) -> bool:
        return self.scroll_offset.y >= self.max_scroll_y

    def select(self, key: str) -> None:
        """Select a row and scroll to it."""
        if any(row.key == key for row in self.rows):
            self._to(key)

    @property
    def has_keys(self) -> bool:
        """Whether a row of it can be selected."""
        return any(row.key for row in self.rows)

    def _keys(self) -> list[str]:
        return list(dict.fromkeys(row.key for row in self.rows if row.key))

    def _select_again(self, before: list[str]) -> None:
        keys = self._keys()
        if self.selected in keys and self.selected:
            return
        if self.selected in before:
            self._gap = before.index(self.selected)
        if not keys or not before:
            self._gap = None
        self.selected = keys[0] if keys and self._gap is None else ""
        self.post_message(self.Moved(self, self.selected))

    def _resize(self, at_end: bool) -> None:
        self.virtual_size = Size(self.size.width, len(self.rows))
        if self.follow and at_end:
            self.scroll_to(y=len(self.rows), animate=False, force=True)

    def on_resize(self) -> None:
        self._resize(self.follow and self.is_at_end)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if number >= len(self.rows):
            return Strip.blank(width, self._look(Colour.NONE, False, Colour.NONE))
        row = self.rows[number]
        selected = bool(row.key) and row.key == self.selected
        begins = number == 0 or self.rows[number - 1].key != row.key
        marked = Style(reverse=True, bold=True) if begins and row.key in self.marked else Style.null()
        segments = [
            Segment(cell.text, self._look(cell.colour, selected, row.tint) + (marked if at < 2 else Style.null()))
            for at, cell in enumerate(row.cells)
            if cell.text
        ]
        return Strip(segments).adjust_cell_length(width, self._look(Colour.NONE, selected, row.tint))

    def _look(self, colour: Colour, selected: bool, tint: Colour) -> Style:
        found = self._looks.get((colour, selected, tint))
        if found is None:
            found = self.get_component_rich_style(_CLASSES[colour]) if colour.value else self.rich_style
            marked = self.get_component_rich_style("rows--selected")
            # A terminal of 16 colours has none that can be read on a green or red background, and reversed colours of
            # cells would be as many backgrounds: there a line has one colour.
            has_few_colours = bool(marked.reverse)
            if tint in _TINTS:
                tinted = self.get_component_rich_style(_TINTS[tint])
                found = tinted if has_few_colours else found + _only_marked(tinted)
            if selected and (self.has_focus or self.always_marked):
                found = Style(bold=found.bold, reverse=True) if has_few_colours else found + _only_marked(marked)
            self._looks[colour, selected, tint] = found
        return found

    def on_focus(self) -> None:
        self._looks.clear()
        self.refresh()

    def on_blur(self) -> None:
        self._looks.clear()
        self.refresh()

    # Keys

    def action_down(self) -> None:
        self._step(1)

    def action_up(self) -> None:
        self._step(-1)

    def action_first(self) -> None:
        self._edge(0)

    def action_last(self) -> None:
        self._edge(-1)

    def action_page_down(self) -> None:
        self._page(1)

    def action_page_up(self) -> None:
        self._page(-1)

    def action_scroll_down(self) -> None:
        self.scroll_relative(y=3, animate=False, force=True)

    def action_scroll_up(self) -> None:
        self.scroll_relative(y=-3, animate=False, force=True)

    def action_choose(self) -> None:
        self._choose(mouse=False)

    def _choose(self, *, mouse: bool) -> None:
        if self.selected:
            self.post_message(self.Chosen(self, self.selected, mouse=mouse))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self.selected) if action == "choose" else True

    def _step(self, by: int) -> None:
        keys = self._keys()
        if not keys:
            self.scroll_relative(y=by, animate=False, force=True)
            return
        gap = (self._gap or 0) - (by > 0)
        place = keys.index(self.selected) if self.selected in keys else gap
        target = max(0, min(place + by, len(keys) - 1))
        if target == place:
            # Rows without a key before the first and behind the last one can still be seen.
            self.scroll_relative(y=by, animate=False, force=True)
        self._to(keys[target])

    def _edge(self, place: int) -> None:
        keys = self._keys()
        if keys:
            self._to(keys[place])
        self.scroll_to(y=0 if place == 0 else len(self.rows), animate=False, force=True)

    def _page(self, by: int) -> None:
        height = max(1, self.size.height - 1)
        keys = self._keys()
        if not keys:
            self.scroll_relative(y=by * height, animate=False, force=True)
            return
        at = next((n for n, row in enumerate(self.rows) if row.key == self.selected), 0)
        target = max(0, min(at + by * height, len(self.rows) - 1))
        nearby = self.rows[target:] if by > 0 else self.rows[target::-1]
        self._to(next((row.key for row in nearby if row.key), keys[-1 if by > 0 else 0]))

    def _to(self, key: str) -> None:
        if key != self.selected:
            left, self.selected, self._gap = self.selected, key, None
            self.post_message(self.Moved(self, key))
            for number, row in enumerate(self.rows):
                if row.key and row.key in (left, key):
                    self._redraw(number)
            self.refresh_bindings()
        mine = [n for n, row in enumerate(self.rows) if row.key == key]
        if mine:
            region = Region(0, mine[0], max(1, self.size.width), len(mine))
            self.scroll_to_region(region, animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        # A border or a title shifts the rows, and neither is one.
        at = event.get_content_offset(self)
        number = at.y + self.scroll_offset.y if at is not None else len(self.rows)
        if number < len(self.rows) and self.rows[number].key:
            self._to(self.rows[number].key)
            if event.chain >= 2:
                self._choose(mouse=True)


def _only_marked(style: Style) -> Style:
    """Background and attributes of the selection; colours of the text stay."""
    return Style(bgcolor=style.bgcolor, bold=style.bold or None, reverse=style.reverse or None)
