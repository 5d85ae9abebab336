"""A line of text that a person types: the cursor starts behind what is there, and Ctrl+Z takes the last change back."""

from __future__ import annotations

from textual.binding import Binding
from textual.widgets import Input


class TextLine(Input):
    BINDINGS = [Binding("ctrl+z", "undo", "undo", show=False)]

    def __init__(self, value: str = "", *, id: str, placeholder: str = "", password: bool = False) -> None:
        # Text that is selected as a whole would be replaced by the first letter.
        super().__init__(value, id=id, placeholder=placeholder, password=password, select_on_focus=False)
        self._earlier: list[str] = []
        self._shown = value

    def on_mount(self) -> None:
        self.cursor_position = len(self.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.value != self._shown:
            self._earlier.append(self._shown)
            self._shown = event.value

    def action_undo(self) -> None:
        if self._earlier:
            self._shown = self.value = self._earlier.pop()
            self.cursor_position = len(self.value)
