"""Whatever is shown is harmless and fits."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.cli.base.output import (
    Cell,
    Colour,
    Screen,
    clock,
    cut,
    duration,
    fine_duration,
    progress,
    sanitize,
    sanitize_lines,
    size,
    width,
    wrap,
)

HOSTILE = st.one_of(
    st.text(), st.text(alphabet="\x1b[]0;31mA\x07\\\x9b\x9d\n\r\t\u202e\u2066\u200d🎉漢é\ufe0f", max_size=200)
)


def screen(columns: int = 80, **told) -> Screen:
    return Screen(tty=True, colours=False, unicode=True, width=columns, height=None, **told)


@given(HOSTILE)
def test_a_harmless_line_holds_nothing_that_a_terminal_obeys(text: str):
    for letter in sanitize(text):
        assert unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(HOSTILE)
def test_harmless_lines_hold_nothing_that_a_terminal_obeys(text: str):
    for line in sanitize_lines(text):
        assert not [letter for letter in line if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@given(HOSTILE)
def test_being_harmless_twice_changes_nothing(text: str):
    assert sanitize(sanitize(text)) == sanitize(text)


@given(HOSTILE, st.integers(min_value=0, max_value=50))
def test_what_is_cut_fits(text: str, columns: int):
    assert width(cut(sanitize(text), columns)) <= columns


@given(HOSTILE, st.integers(min_value=2, max_value=50))
def test_what_is_wrapped_fits_and_loses_no_word(text: str, columns: int):
    line = sanitize(text)
    lines = wrap(line, columns)
    assert all(width(one) <= columns for one in lines)
    assert "".join("".join(lines).split()) == "".join(line.split())


def test_a_command_in_backquotes_is_not_broken():
    line = "Fix it: `legion init --remove '/a b/c'`, then `legion up`."
    assert wrap(line, 34) == ["Fix it:", "`legion init --remove '/a b/c'`,", "then `legion up`."]


def test_nothing_is_cut_or_wrapped_in_a_pipe(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    piped = Screen.of(io.StringIO(), plain=True)
    long = "word " * 60
    assert piped.line(Cell(long)) == long.rstrip()
    assert piped.note(long.strip()) == [f"  {long.strip()}"]
    assert piped.table([[Cell("a"), Cell(long)]]) == [f"  a  {long.rstrip()}"]
    monkeypatch.setenv("COLUMNS", "40")
    stated = Screen.of(io.StringIO(), plain=True)
    assert width(stated.line(Cell(long))) <= 40


@given(st.lists(st.tuples(HOSTILE, HOSTILE, HOSTILE), max_size=8), st.integers(min_value=24, max_value=120))
def test_a_table_fits_its_screen_and_keeps_its_rows(rows, columns: int):
    cells = [[Cell(sanitize(text)) for text in row] for row in rows]
    lines = screen(columns).table(cells)
    assert len(lines) == len(rows)
    assert all(width(line) <= columns for line in lines)
    whole = screen(columns).table(cells, uncut=True)
    assert all(width(line) <= columns for line in whole)
    left = "".join("".join(whole).split())
    assert all("".join(cell.text.split()) in left for row in cells for cell in row)


@given(st.lists(HOSTILE, max_size=5), st.integers(min_value=20, max_value=60))
def test_a_line_fits_its_screen(texts, columns: int):
    assert width(screen(columns).line(*(Cell(sanitize(text)) for text in texts), indent=2)) <= columns


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\there", "two lines here"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x1b[2Jb\x9b5mc", "abc"),
        ("right\u202eleft", "right<U+202E>left"),
        ("bell\x07 back\x08", "bell<U+0007> back<U+0008>"),
        ("family 👩\u200d👩", "family 👩👩"),
        ("  spaces   go  ", "spaces go"),
    ],
)
def test_escapes_go_and_words_stay(text, shown):
    assert sanitize(text) == shown


def test_a_megabyte_is_looked_at_only_as_far_as_it_can_be_seen():
    assert len(sanitize("x" * 1_000_000)) < 10_000


def test_tabs_and_carriage_returns_of_a_log_become_lines():
    assert sanitize_lines("10%\r50%\r\ndone\tnow") == ["10%", "50%", "done    now"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0s"), (12.9, "12s"), (184, "3m 04s"), (7500, "2h 05m"), (273600, "3d 04h"), (-5, "0s")]
)
def test_durations(seconds, said):
    assert duration(seconds) == said


def test_short_durations_have_tenths_where_they_matter():
    assert [fine_duration(seconds) for seconds in (0.04, 2.5, 9.94, 9.96, 61)] == [
        "0.0s",
        "2.5s",
        "9.9s",
        "9s",
        "1m 01s",
    ]


def test_sizes():
    assert [size(number) for number in (0, 1023, 1536, 20480, 5 * 2**30)] == [
        "0 B",
        "1023 B",
        "1.5 KB",
        "20 KB",
        "5.0 GB",
    ]


def test_a_clock_shows_the_day_where_it_is_another():
    assert clock(0.0).startswith("19")


def test_colours_never_change_the_words():
    plain, coloured = screen(), Screen(tty=True, colours=True, unicode=True, width=80, height=None)
    assert coloured.paint("done", Colour.GREEN) == "\x1b[32mdone\x1b[0m"
    assert plain.paint("done", Colour.GREEN) == "done"
    row = [[Cell("a", Colour.RED), Cell("b")]]
    assert coloured.table(row)[0].replace("\x1b[31m", "").replace("\x1b[0m", "") == plain.table(row)[0]


def test_a_long_text_says_that_it_was_cut():
    lines = screen().paragraph("\n".join(str(n) for n in range(100)), most_lines=5)
    assert len(lines) == 6
    assert "--full" in lines[-1]
    cut = screen().paragraph("a\nb\nc", most_lines=2, rest="--json")
    assert cut[-1].strip() == "(cut; --json shows all of it)"


def test_on_a_terminal_a_long_step_counts_its_seconds_and_leaves_an_empty_line():
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, contextlib.redirect_stderr(terminal):
        with progress("Ending Legion"):
            shown = os.read(ours, 100)
        left = os.read(ours, 100)
    os.close(ours)
    assert shown.startswith(b"\rEnding Legion (1")
    assert left.endswith(b"\r\x1b[K")
