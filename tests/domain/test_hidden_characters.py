"""Characters that a change adds and a screen does not show."""

from __future__ import annotations

import pytest

from legion.domain.review import diffs
from legion.domain.review.additions import hidden_characters, warning


def found(*lines: str) -> list[tuple[str, int, str]]:
    text = "\n".join(("diff --git a/x.py b/x.py", "--- a/x.py", "+++ b/x.py", *lines, ""))
    return [(one.path, one.line, one.code) for one in hidden_characters(diffs.read(text))]


@pytest.mark.parametrize("code", [0x202E, 0x2066, 0x200B, 0x200F, 0xFEFF, 0xAD, 0xE0041, 0x1B, 0x9B])
def test_a_character_that_is_added_is_found_with_its_place(code: int):
    assert found("@@ -1,1 +1,2 @@", " a = 1", f"+b{chr(code)} = 2") == [("x.py", 2, f"U+{code:04X}")]


def test_what_was_there_before_is_no_finding():
    assert found("@@ -3,1 +3,1 @@", "-name = 'a\u200bb'", "+title = 'a\u200bb'") == []
    assert found("@@ -3,1 +3,0 @@", "-name = 'a\u200bb'") == []
    assert found("@@ -3,1 +3,2 @@", "-x\u200b", "+x\u200b", "+y\u200b") == [("x.py", 4, "U+200B")]


def test_text_of_people_is_no_finding():
    assert found("@@ -0,0 +1,3 @@", "+\ufeffשלום 👩‍💻 ❤️", "+می‌خواهم\r", "+\tindented") == []


def test_the_warning_names_the_first_ones():
    text = "\n".join(("diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -0,0 +1,9 @@", *["+\u202e"] * 5, ""))
    assert warning(hidden_characters(diffs.read(text))) == (
        "The change adds characters that a screen does not show: U+202E in x:1, U+202E in x:2, U+202E in x:3"
        " and 2 more."
    )
    assert warning(()) == ""
