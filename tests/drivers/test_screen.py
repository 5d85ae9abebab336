"""What the output of an interactive program shows about its state."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from legion.domain.errors import BadInput
from legion.drivers.programs.description import described, parse
from legion.drivers.terminal.screen import ScreenReader, ScreenState
from legion.drivers.terminal_options import TerminalOptions
from legion.drivers.turns.profile import capabilities

OPTIONS = TerminalOptions(ready=("> $",), asking=(r"Do you want to [a-z ]+\?",), accept=("want to edit",))


def read(*pieces: bytes) -> ScreenReader:
    reader = ScreenReader(OPTIONS)
    for piece in pieces:
        reader.feed(piece)
    return reader


@pytest.mark.parametrize(
    ("output", "state"),
    [
        pytest.param(b"thinking", ScreenState.QUIET, id="nothing-known"),
        pytest.param(b"\x1b[1mname\x1b[0m> ", ScreenState.READY, id="prompt"),
        pytest.param(b"\x1b]133;A\x07$ ", ScreenState.READY, id="prompt-mark"),
        pytest.param(b"Do you want to \x1b[32medit\x1b[0m?\r\n 1. Yes", ScreenState.ASKING, id="question"),
        pytest.param(b"Do you want to run?\x1b[2Jdone> ", ScreenState.READY, id="question-cleared"),
        pytest.param(b"Do you want to run?" + b"x" * 2000, ScreenState.QUIET, id="question-long-ago"),
    ],
)
def test_the_state_is_read_from_a_silent_screen(output: bytes, state: ScreenState):
    assert read(output).state(quiet=True) is state
    assert read(output).state(quiet=False) is ScreenState.WORKING


def test_sequences_may_be_cut_anywhere():
    output = b"\x1b]0;my title\x07Do you \x1b[1;31mwant to edit\x1b[0m?\x07\x1b]9;look here\x1b\\"
    for cut in range(len(output)):
        reader = read(output[:cut], output[cut:])
        assert (reader.title, reader.notes, reader.bells) == ("my title", ["look here"], 1), cut
        asked = reader.asked()
        assert asked is not None, cut
        assert (asked.text, asked.rule) == ("Do you want to edit?", "want to edit"), cut


def test_only_what_a_rule_names_is_accepted():
    asked = read(b"Do you want to delete everything?").asked()
    assert asked is not None
    assert asked.rule == ""


def test_an_old_question_accepts_no_later_one_and_the_line_of_a_question_is_shown():
    asked = read(b"Do you want to edit?\r\nyes\r\nNow: Do you want to delete everything?").asked()
    assert asked is not None
    assert (asked.text, asked.rule) == ("Now: Do you want to delete everything?", "")


def test_an_answered_question_is_over():
    reader = read(b"Do you want to run?")
    reader.answered()
    assert reader.asked() is None


def test_notifications_of_both_kinds_are_read_and_progress_is_none():
    assert read(b"\x1b]777;notify;Done;all green\x07\x1b]9;4;1;50\x07").notes == ["Done: all green"]


DESCRIBED = """
title = "Chatter"
driver = "terminal"
[program]
run = ["chatter", "--tui"]
[terminal]
ready = ["^> $"]
asking = ["Proceed\\\\?"]
accept = ["Proceed\\\\?"]
yes = "y"
leave = "\\u0004"
"""


def test_a_program_is_described_by_its_patterns():
    found = described("chatter", parse(DESCRIBED, "chatter", "chatter.toml"), "chatter.toml")
    assert (found.terminal.ready, found.terminal.yes, found.terminal.leave) == (("^> $",), "y", "\x04")
    assert capabilities(found).interactive
    assert not capabilities(found).talks
    assert TerminalOptions(**asdict(found.terminal)).accept == ("Proceed\\?",)


def test_a_pattern_that_is_none_is_refused_by_its_key():
    broken = DESCRIBED.replace("^> $", "(")
    with pytest.raises(BadInput, match=r"`terminal.ready` holds '\('"):
        described("chatter", parse(broken, "chatter", "chatter.toml"), "chatter.toml")
