"""What a person types becomes an expression that SQLite accepts, whatever it is."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legion.conversations.conversation import plain
from legion.conversations.index import expression


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("login form", '"login" "form"'),
        ('"merge queue" bisect', '"merge queue" "bisect"'),
        ("migr*", '"migr"*'),
        ("a*", '"a"'),
        ("src/legion/api.py", '"src/legion/api.py"'),
        ("NOT (x OR y)", '"NOT" "(x" "OR" "y)"'),
        ('* - "" \'', ""),
        ("", ""),
    ],
)
def test_words_phrases_and_starts_of_words(query: str, wanted: str):
    assert expression(query) == wanted


@settings(deadline=None)
@given(st.text())
def test_no_text_is_a_mistake_for_sqlite(query: str):
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5(text)")
    wanted = expression(query.replace("\0", "").encode("utf-8", "ignore").decode())
    if wanted:
        database.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (wanted,)).fetchall()
    database.close()


def test_nothing_in_a_text_can_drive_a_terminal():
    assert plain("a\x1b[2J\x07b\r\nc\td\x9b1m\u202e\ud800e\x1b]0;t\x07\x1b[") == "ab\nc\tde"
    assert plain("as it is, ä") == "as it is, ä"
