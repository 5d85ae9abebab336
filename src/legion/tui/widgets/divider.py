"""A divider between two panes that keys and the mouse move, from 20 to 80 percent."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widget import Widget

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
