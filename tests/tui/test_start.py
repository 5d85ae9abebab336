"""How the terminal UI starts: what it finds out about the terminal."""

from __future__ import annotations

import pytest

from legion.tui.start import has_few_colours


@pytest.mark.parametrize(
    ("given", "few"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, False),
        # Textual would draw the colours of a palette black on black.
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ],
    ids=["16", "256", "true", "none"],
)
def test_the_palette_of_the_terminal_is_used_where_it_has_16_colours(
    given: dict[str, str], few: bool, monkeypatch: pytest.MonkeyPatch
):
    for name in ("TERM", "COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert has_few_colours() is few
