"""What a viewer of a terminal gets first: the last output, as far as it draws."""

from __future__ import annotations

from legion.runner.viewers import Ring


def test_old_queries_are_not_replayed_since_a_terminal_would_answer_them_again():
    ring = Ring()
    drawn = (
        b"\x1b[1;31mred\x1b[0m",
        b"\x1b[?25l",
        b"\x1b[5;1H",
        b"\x1b]0;title\x07",
        b"\x1b[>1u",
        b"\x1b[2 q",
        b"\xc3\xa4",
    )
    asked = (
        *(
            b"\x1b[c",
            b"\x1b[>0c",
            b"\x1b[6n",
            b"\x1b[?996n",
            b"\x1b[?2026$p",
            b"\x1b[>q",
            b"\x1b[?u",
            b"\x1b[18t",
            b"\x05",
        ),
        *(b"\x1b]11;?\x07", b"\x1b]4;1;?\x1b\\", b"\x1bP+q544e\x1b\\"),
    )
    for one in (*drawn, *asked):
        ring.add(one)
    assert ring.replay() == b"".join(drawn)
