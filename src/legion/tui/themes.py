"""The colours of the terminal UI: Legion's own, and those of the terminal's palette."""

from __future__ import annotations

from textual.theme import Theme

THEMES = (
    Theme(
        name="legion-dark", primary="#5c9dff", secondary="#57c7d4", accent="#57c7d4", warning="#e5b567",
        error="#f2777a", success="#8fce7f", foreground="#dcdfe4",
        background="#14161b", surface="#1b1e25", panel="#232833", dark=True,
    ),
    Theme(
        name="legion-light", primary="#1f5fbf", secondary="#0b7a86", accent="#0b7a86", warning="#8a5a00",
        error="#b3261e", success="#2d7a1f", foreground="#1d2026",
        background="#fbfbfa", surface="#f0f0ee", panel="#e4e6ea", dark=False,
    ),
)  # fmt: skip
DARK, LIGHT = ("legion-dark", "ansi-dark"), ("legion-light", "ansi-light")
"""By whether the terminal has few colours."""
