"""What of a program's output reaches the person's terminal while they are attached."""

from __future__ import annotations

import pytest

from legion.client.terminal import OutputFilter


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
    ],
)
def test_what_reaches_past_the_screen_is_left_out_however_it_is_cut(output: bytes):
    for cut in range(len(output)):
        filter = OutputFilter()
        shown = filter.feed(b"before" + output[:cut]) + filter.feed(output[cut:] + b"after")
        assert shown == b"beforeafter", cut


def test_a_string_without_an_end_holds_nothing_back_for_ever():
    filter = OutputFilter()
    filter.feed(b"\x1b]52;c;")
    assert b"later" in filter.feed(b"A" * 10_000 + b"later")
