"""Small widgets: a divider that keys and the mouse move, and a line of text that a person types."""

from __future__ import annotations

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

LEAST, MOST, STEP = 20, 80, 5


def moved(percent: int, by: int) -> int:
    return max(LEAST, min(MOST, percent + by))


class Divider(Widget):
    DEFAULT_CSS = """
    Divider { width: 1; height: 1fr; background: $panel; }
    Divider:hover, Divider.-held { background: $primary; }
    """

    class Dragged(Message):
        def __init__(self, percent: int) -> None:
            super().__init__()
            self.percent = percent

    def render(self) -> str:
        return ""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.capture_mouse()
        self.add_class("-held")

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()
        self.remove_class("-held")

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.has_class("-held"):
            self.post_message(self.Dragged(moved(event.screen_x * 100 // max(1, self.screen.size.width), 0)))


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
