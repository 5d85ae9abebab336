"""Draws with ASCII alone, for terminals that show no other characters."""

from __future__ import annotations

from functools import lru_cache

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from legion.client.text.states import STYLES
from legion.client.text.terminal import width

_SIGNS = {
    **{style.symbol: style.ascii for style in STYLES.values()},
    **dict.fromkeys("│┃▌▐▏▎▍▋▊▉█▕", "|"), **dict.fromkeys("─━▔▁▂▃▄▅▆▇", "-"), **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+"),
    "…": "~", "★": "*", "→": ">", "←": "<", "↑": "^", "↓": "v", "↶": "<", "▸": ">", "▾": "v", "✎": "~", "◌": "o",
}  # fmt: skip


@lru_cache(4096)
def in_ascii(text: str) -> str:
    """The text in as many columns; a character that has no likeness becomes a question mark."""
    if text.isascii():
        return text
    return "".join(letter if letter.isascii() else _SIGNS.get(letter, "?" * max(0, width(letter))) for letter in text)


class AsciiFilter(LineFilter):
    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(in_ascii(text), style, control) for text, style, control in segments]
