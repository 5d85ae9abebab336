"""What an agent says about its progress, found in any output."""

from __future__ import annotations

import pytest

from legion.domain.tickets.spec import Statements, statements_in

BLOCK = "SMOKE_TESTS:\n- open /login\n- log in   \n\nEND_SMOKE_TESTS\n"


@pytest.mark.parametrize(
    ("text", "status", "tests"),
    [
        ("", "", ""),
        (
            "STATUS: read the code → write the form → [confidence: high]",
            "read the code → write the form → [confidence: high]",
            "",
        ),
        ("STATUS: one\nmore\nSTATUS:  two   words ", "two words", ""),
        ("**STATUS:** half done", "half done", ""),
        ("The HTTP STATUS: 200", "", ""),
        ("STATUS:", "", ""),
        (BLOCK, "", "- open /login\n- log in"),
        (f"{BLOCK}{BLOCK.replace('login', 'home')}", "", "- open /home\n- log in"),
        ("SMOKE_TESTS:\n- never ends", "", ""),
        (f"x\n{BLOCK}STATUS: done", "done", "- open /login\n- log in"),
    ],
    ids=["empty", "status", "last", "bold", "prose", "bare", "block", "last-block", "open-block", "both"],
)
def test_the_last_statements_count(text: str, status: str, tests: str):
    assert statements_in(text) == Statements(status=status, smoke_tests=tests)


def test_long_statements_are_cut():
    found = statements_in(f"STATUS: {'x' * 999}\nSMOKE_TESTS\n{'y' * 9999}\nEND_SMOKE_TESTS")
    assert (len(found.status), len(found.smoke_tests)) == (200, 4000)
