"""Questions on top of a place: yes or no, one line of text, one of several. Esc leaves each without an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from legion.client.text.rows import BLANK, Row, clean, definitions, flow, note, paragraph
from legion.client.text.terminal import Cell, Colour, duration
from legion.tui.screens.host import UiHost
from legion.tui.widgets.divider import TextLine
from legion.tui.widgets.lines import RowLines
from legion.tui.widgets.row_list import RowList

_Result = TypeVar("_Result")
_MOMENT = 0.3
"""Seconds without a key before an answer counts: less is a held key, or text that was meant for elsewhere."""


class DecisionScreen(ModalScreen[_Result]):
    """Something to decide. No key counts that was pressed before it could be read, or in the middle of typing."""

    def on_mount(self) -> None:
        self._opened_by = cast(UiHost, self.app).typed.key
        self._read_from: float | None = None
        self.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        self._read_from = time.monotonic()

    def quiet_at(self, moment: float, before: float) -> bool:
        """Whether a key of that moment is an answer, if the key before it was pressed then."""
        return self._read_from is not None and moment - max(self._read_from, before) >= _MOMENT

    @property
    def is_answered(self) -> bool:
        """Whether the key that is handled now counts as an answer."""
        typed = cast(UiHost, self.app).typed
        return self.quiet_at(typed.pressed_at, typed.before_at)


class YesNo(DecisionScreen[bool]):
    """One question before what cannot be undone with a key. The key that opened it does not say yes."""

    BINDINGS = [("y,enter", "yes", "yes"), ("n,escape,q", "no", "no")]
    DEFAULT_CSS = """
    YesNo { align: center middle; background: $background 60%; }
    YesNo > RowList { width: 70%; max-width: 90; min-width: 40; max-height: 60%;
        border: round $primary; padding: 0 1; }
    """

    def __init__(self, question: str, rows: Sequence[Row] = ()) -> None:
        super().__init__()
        self._question = question
        self._rows = rows

    def compose(self) -> ComposeResult:
        yield TextBox(id="question")

    def on_mount(self) -> None:
        # Textual calls that of the other class, too.
        self.on_resize()

    def on_resize(self) -> None:
        room = max(30, min(86, self.size.width * 7 // 10 - 4))
        yes = "Enter" if cast(UiHost, self.app).typed.key == "y" else "y"
        rows = [*paragraph(self._question, room), *self._rows, BLANK, note(f"{yes}  yes     n  no")]
        self.query_one(TextBox).put(rows)

    def action_yes(self) -> None:
        if self.is_answered and cast(UiHost, self.app).typed.key != self._opened_by:
            self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)


class TextBox(RowList, can_focus=True):
    """Rows in a box that is as high as they are."""

    DEFAULT_CSS = "TextBox { height: auto; }"

    def put(self, rows: Sequence[Row]) -> None:
        super().put(rows)
        self.styles.height = min(len(rows) + 2, max(3, self.app.size.height - 2))


class LinePrompt(ModalScreen[str | None]):
    """One line of text at the bottom. What is typed is kept as a draft until it was sent."""

    BINDINGS = [("escape", "leave", "leave")]
    DEFAULT_CSS = """
    LinePrompt { align: center bottom; background: $background 0%; }
    LinePrompt > Vertical { height: auto; background: $panel; border-top: solid $primary; }
    LinePrompt Input { border: none; height: 1; background: $panel; padding: 0 1; }
    LinePrompt RowLines { background: $panel; }
    """

    def __init__(
        self, title: str, *, draft: str = "", changed: Callable[[str], None] | None = None, empty: bool = False
    ) -> None:
        """`draft` names where the text is kept; `changed` gets every version of it; `empty`: no text is an answer."""
        super().__init__()
        self._title = title
        self._draft = draft
        self._changed = changed
        self._empty = empty

    def compose(self) -> ComposeResult:
        drafts = cast(UiHost, self.app).drafts
        with Vertical():
            yield RowLines(id="title")
            yield TextLine(drafts.get(self._draft) if self._draft else "", id="text")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.on_resize()

    def on_resize(self) -> None:
        title = Cell(f" {self._title}  (Enter sends, Esc leaves)")
        self.query_one(RowLines).show_all(flow([title], self.size.width, indent=1))

    @on(Input.Changed)
    def _keep(self, event: Input.Changed) -> None:
        if self._draft:
            cast(UiHost, self.app).drafts.put(self._draft, event.value)
        if self._changed is not None:
            self._changed(event.value)

    @on(Input.Submitted)
    def _send(self, event: Input.Submitted) -> None:
        if event.value.strip() or self._empty:
            self.dismiss(event.value.strip())

    def action_leave(self) -> None:
        self.dismiss(None)


class Choice(DecisionScreen[str | None]):
    """One of several, selected by arrow keys or its number, and chosen by Enter."""

    BINDINGS = [("escape,q", "leave", "leave")]
    DEFAULT_CSS = """
    Choice { align: center middle; background: $background 60%; }
    Choice > RowList { width: 70%; max-width: 90; min-width: 40; border: round $primary; padding: 0 1; }
    """

    def __init__(self, title: str, choices: Sequence[tuple[str, str]]) -> None:
        """`choices` are (value, text)."""
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        yield TextBox(id="choices")

    def on_mount(self) -> None:
        # Textual calls that of the other class, too.
        self.on_resize()

    def on_resize(self) -> None:
        room = max(30, min(86, self.size.width * 7 // 10 - 4))
        lines = [(value, [Cell(str(n)), Cell(clean(text))]) for n, (value, text) in enumerate(self._choices, 1)]
        title = paragraph(self._title, room, colour=Colour.BOLD)
        box = self.query_one(TextBox)
        box.put([*title, BLANK, *definitions(lines, room), BLANK, note("Enter chooses, Esc leaves")])
        box.focus()

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        if event.mouse or self.is_answered:
            self.dismiss(event.key)

    def on_key(self, event: object) -> None:
        character = getattr(event, "character", None) or ""
        if character.isdecimal() and 1 <= int(character) <= len(self._choices):
            self.query_one(TextBox).select(self._choices[int(character) - 1][0])

    def action_leave(self) -> None:
        self.dismiss(None)


class Picker(ModalScreen[str | None]):
    """One of many, found by typing parts of it."""

    BINDINGS = [
        Binding("escape", "leave", "leave"),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Picker { align: center middle; background: $background 60%; }
    Picker > Vertical { width: 80%; max-width: 90; height: 80%; border: round $primary; background: $background; }
    Picker Input { border: none; height: 1; background: $panel; padding: 0 1; }
    Picker RowList { height: 1fr; padding: 0 1; }
    """

    def __init__(self, title: str, choices: Sequence[tuple[str, str]] | None, selected: str = "") -> None:
        """`choices` are (value, text); None: they follow."""
        super().__init__()
        self._title = title
        self._choices = choices
        self._selected = selected

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            yield TextLine(placeholder="Type to search; Enter chooses, Esc leaves", id="search")
            rows = RowList(id="choices")
            rows.can_focus = False
            rows.always_marked = True
            yield rows

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.on_resize()

    def on_resize(self) -> None:
        self._renew()
        self.query_one(RowList).select(self._selected)

    def offer(self, choices: Sequence[tuple[str, str]]) -> None:
        """These instead; what was typed and selected stays."""
        self._choices = choices
        if self.is_attached:
            self._renew()

    @on(Input.Changed)
    def _renew(self) -> None:
        words = self.query_one(Input).value.lower().split()
        found = [one for one in self._choices or () if all(word in one[1].lower() for word in words)]
        room = max(20, min(84, self.size.width * 8 // 10 - 5))
        rows = [made for value, text in found for made in paragraph(text, room, key=value)]
        choices = self.query_one(RowList)
        choices.put(rows or [note(self._why_empty)])
        if not choices.selected and rows:
            choices.action_first()

    @property
    def _why_empty(self) -> str:
        if self._choices is None:
            return "Asking Legion."
        return "Nothing has these letters." if self._choices else "There is none."

    @on(Input.Submitted)
    def _submitted(self) -> None:
        chosen = self.query_one(RowList).selected
        if chosen:
            self.dismiss(chosen)

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self.dismiss(event.key)

    def action_move(self, by: int) -> None:
        rows = self.query_one(RowList)
        (rows.action_down if by > 0 else rows.action_up)()

    def action_leave(self) -> None:
        self.dismiss(None)


class Reader(ModalScreen[None]):
    """Rows to read: help, a text, what was before."""

    BINDINGS = [("escape,q,question_mark,enter", "leave", "leave")]
    DEFAULT_CSS = """
    Reader { align: center middle; background: $background 60%; }
    Reader > RowList { width: 90%; max-width: 110; max-height: 90%; border: round $primary; padding: 0 1; }
    """

    def __init__(self, title: str, rows: Callable[[int], Sequence[Row]]) -> None:
        """`rows` gets the width."""
        super().__init__()
        self._title = title
        self._make = rows

    def compose(self) -> ComposeResult:
        yield TextBox(id="text")

    def on_mount(self) -> None:
        self.on_resize()

    def on_resize(self) -> None:
        box = self.query_one(TextBox)
        box.border_title = self._title
        room = max(20, min(106, self.size.width * 9 // 10 - 5))
        box.put(self._make(room))
        box.focus()

    def action_leave(self) -> None:
        self.dismiss(None)


class WaitDialog(ModalScreen[None]):
    BINDINGS = [("escape", "give_up", "give up")]
    DEFAULT_CSS = """
    WaitDialog { align: center middle; background: $background 60%; }
    WaitDialog > RowList { width: 70%; max-width: 90; min-width: 40; border: round $primary; padding: 0 1; }
    """

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what
        self._began = time.monotonic()
        self.given_up = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield TextBox(id="waiting")

    def on_mount(self) -> None:
        self.on_resize()
        self.set_interval(1.0, self.on_resize)

    def on_resize(self) -> None:
        room = max(30, min(86, self.size.width * 7 // 10 - 4))
        words = f"{self._what}, {duration(time.monotonic() - self._began)}"
        self.query_one(TextBox).put([*paragraph(words, room), BLANK, note("Esc  give up: the agent works on alone")])

    def action_give_up(self) -> None:
        self.given_up.set()
