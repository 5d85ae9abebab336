"""What of a program's output reaches the person's terminal while they are attached."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.client.output_filter import OutputFilter

CLIPBOARD = re.compile(rb"\x1b[\x00-\x17\x19\x1c-\x1f\x7f]*\][\x00-\x17]*0*5[\x00-\x17]*2[\x00-\x17]*;")


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(b"plain\r\n\xc3\xa4\x1b[1;31mred\x1b[0m\x1b[?1049h\x1b(B\x1b7", id="drawing"),
        pytest.param(b"\x1b]0;title\x07\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", id="title-and-links"),
        pytest.param(b"\x1b]9;look\x07\x1b]133;A\x07", id="notifications"),
    ],
)
def test_drawing_passes_unchanged_however_it_is_cut(output: bytes):
    for cut in range(len(output)):
        filter = OutputFilter()
        assert filter.feed(output[:cut]) + filter.feed(output[cut:]) == output


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(b"\x1b]52;c;cm0gLXJmIC8K\x07", id="clipboard"),
        pytest.param(b"\x1b]52;c;cm0gLXJmIC8K\x1b\\", id="clipboard-other-end"),
        pytest.param(b"\x1bP+q544e\x1b\\", id="device-string"),
        pytest.param(b"\x1b_Gf=100;AAAA\x1b\\", id="application-string"),
        pytest.param(b"\x1b]1337;SetMark\x07", id="of-one-terminal"),
        pytest.param(b"\x1b]052;c;QQ==\x07", id="zeros-before-the-number"),
        pytest.param(b"\x1b]5\n2;c;QQ==\x07", id="line-end-in-the-number"),
        pytest.param(b"\x1b\x1b]52;c;QQ==\x07", id="two-escapes"),
        pytest.param(b"\x1b\r]52;c;QQ==\x07", id="return-after-the-escape"),
        pytest.param(b"\x1b]0;title\x1b]52;c;QQ==\x07", id="one-string-in-another"),
        pytest.param(b"\x1b[31\x1b]52;c;QQ==\x07", id="a-string-in-a-colour"),
        pytest.param(b"\x1b]0;title\x18\x1b]52;c;QQ==\x07", id="after-a-cancelled-string"),
        pytest.param(b"\x1b]51;E(delete-file)\x07", id="commands-of-an-editor"),
        pytest.param(b'\x1b]9;6;"run"\x07', id="macro"),
        pytest.param(b"\x1b]11;#000000\x07", id="a-new-colour"),
        pytest.param(b"\x1b]7;file:///tmp\x07", id="folder"),
        pytest.param(b"\x1b[5i", id="printer"),
        pytest.param(b"\x1b[21t", id="title-typed"),
        pytest.param(b"\x1b[2\n1t", id="title-typed-with-a-line-end"),
        pytest.param(b"\x1b[1;1;1;1;9;9*y", id="sum-of-the-screen"),
        pytest.param(b"\x1b[2h\x1b[?38h", id="keyboard-locked"),
    ],
)
def test_what_reaches_past_the_screen_is_left_out_however_it_is_cut(output: bytes):
    for cut in range(len(output)):
        filter = OutputFilter()
        shown = filter.feed(b"before" + output[:cut]) + filter.feed(output[cut:] + b"after")
        assert shown == b"beforeafter", cut


def test_control_characters_beyond_ascii_are_left_out_and_letters_are_not():
    output = "\u201d\u009d52;c;QQ==\u009c\u00e4".encode()
    for cut in range(len(output)):
        filter = OutputFilter()
        shown = filter.feed(output[:cut]) + filter.feed(output[cut:])
        assert shown.decode() == "\u201d52;c;QQ==\u00e4"


def test_programs_may_ask_for_colours_and_sizes():
    asked = b"\x1b]11;?\x07\x1b]4;1;?\x1b\\\x1b[18t\x1b[c\x1b[6n\x1b[?2026$p\x1b]9;4;1;50\x07"
    assert OutputFilter().feed(asked) == asked


PIECES = [*(bytes([one]) for one in b"\x1b[]P\\\x07\x18;52t\n"), b"\xc2", b"\x9d", b"]52;c;"]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_mixture_reaches_the_clipboard_and_no_cut_changes_what_is_shown(pieces: list[bytes]):
    output = b"".join(pieces)
    shown = OutputFilter().feed(output)
    assert not CLIPBOARD.search(shown)
    filter = OutputFilter()
    assert b"".join(filter.feed(bytes([one])) for one in output) == shown


def test_a_string_without_an_end_holds_nothing_back_for_ever():
    filter = OutputFilter()
    filter.feed(b"\x1b]52;c;")
    assert b"later" in filter.feed(b"A" * 10_000 + b"later")
