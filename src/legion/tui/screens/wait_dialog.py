"""A dialog while something is waited for: it counts the seconds, and Esc gives up."""

from __future__ import annotations

import asyncio
import time

from textual.app import ComposeResult
from textual.screen import ModalScreen

from legion.client.text.rows import BLANK, note, paragraph
from legion.client.text.terminal import duration
from legion.tui.screens.prompts import TextBox


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
