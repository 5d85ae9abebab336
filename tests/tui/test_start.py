"""How the terminal UI starts: what it finds out about the terminal."""

from __future__ import annotations

import pytest

from legion.client.text.tickets import in_ascii
from legion.tui.start import has_few_colours, shows_ascii_alone


@pytest.mark.parametrize(
    ("given", "few"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, True),
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


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"LANG": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),
        ({}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LANG": "C.UTF-8"}, False),
        ({"LANG": "C", "LC_ALL": "en_US.utf8"}, False),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, True),
    ],
)
def test_the_locale_and_the_console_say_whether_there_are_other_characters_than_ascii(
    given: dict[str, str], plain: bool, monkeypatch: pytest.MonkeyPatch
):
    for name in ("TERM", "LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert shows_ascii_alone() is plain


def test_ascii_keeps_the_columns_and_every_state_has_a_sign_of_its_own():
    assert in_ascii("● #2 │ waits … 終 é") == "* #2 | waits ~ ?? ?"
