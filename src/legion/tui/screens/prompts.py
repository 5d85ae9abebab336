"""Questions on top of a place: yes or no, one line of text, one of several. Esc leaves each without an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from legion.tui.screens.host import UiHost
from legion.tui.views.rows import Row, row
from legion.tui.widgets.row_list import RowList


class YesNo(ModalScreen[bool]):
    """One question before what cannot be undone with a key."""

    BINDINGS = [("y,enter", "answer(True)", "yes"), ("n,escape,q", "answer(False)", "no")]
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
        from legion.tui.views.rows import BLANK, note, paragraph

        room = max(30, min(86, self.size.width * 7 // 10 - 4))
        rows = [*paragraph(self._question, room), *self._rows, BLANK, note("y  yes     n  no")]
        self.query_one(TextBox).put(rows)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


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
    LinePrompt RowList { height: 1; background: $panel; }
    """

    def __init__(
        self,
        title: str,
        *,
        draft: str = "",
        changed: Callable[[str], None] | None = None,
        empty: bool = False,
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
            title = RowList(id="title")
            title.can_focus = False
            yield title
            yield Input(value=drafts.get(self._draft) if self._draft else "", id="text")

    def on_mount(self) -> None:
        self.query_one("#title", RowList).put([row(f" {self._title}  (Enter sends, Esc leaves)")])
        self.query_one(Input).focus()

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


class Choice(ModalScreen[str | None]):
    """One of several, by arrow keys, Enter or its number."""

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
        from legion.tui.views.rows import BLANK, clean, head, note

        rows = [row(f"{number}  {clean(text)}", key=value) for number, (value, text) in enumerate(self._choices, 1)]
        box = self.query_one(TextBox)
        box.put([head(self._title), BLANK, *rows, BLANK, note("Enter chooses, Esc leaves")])
        box.focus()

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self.dismiss(event.key)

    def on_key(self, event: object) -> None:
        character = getattr(event, "character", None) or ""
        if character.isdigit() and 1 <= int(character) <= len(self._choices):
            self.dismiss(self._choices[int(character) - 1][0])

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
        box = self.query_one(TextBox)
        box.border_title = self._title
        room = max(20, min(106, self.size.width * 9 // 10 - 5))
        box.put(self._make(room))
        box.focus()

    def action_leave(self) -> None:
        self.dismiss(None)
