"""Text of programs: what no encoding holds is replaced, what a screen does not show is a mark."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.text import HIDDEN, TOO_DEEP, from_json, hidden_in, in_all, recorded, reveal, to_json, whole
from tests.support.attacks import Attacker, Door, attack

ANY = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=40)
VALUES = st.recursive(ANY | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(ANY, inner))
FORMAT_BUT_SEEN = (
    "\t\n\r\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    + "".join(map(chr, range(0x13430, 0x13440)))
)
"""Numbers' signs of Arabic, Syriac and Kaithi, and those that join Egyptian hieroglyphs."""
SEEN = (
    "Straße, naïve, 漢字, ｆｕｌｌ",
    "👩‍💻 ❤️ 👨‍👩‍👧‍👦 1️⃣ #️⃣ 👍🏽 👩🏽‍🚀 🏳️‍🌈 🏳️‍⚧️ ☎︎ ↔️",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "می‌خواهم",
    "क्‍ष and ශ්‍රී",
    "שלום עולם, مرحبا بالعالم",
    "葛\U000e0100城",
    "tab\tand\r\nlines",
)


@given(ANY)
def test_whole_text_has_an_encoding_and_other_text_stays(text: str):
    made = whole(text)
    made.encode()
    assert whole(made) == made
    if not any(0xD800 <= ord(letter) <= 0xDFFF for letter in text):
        assert made == text


@pytest.mark.parametrize(
    ("text", "made"),
    [("a\ud83db", "a\ufffdb"), ("\ud83d" + "\ude00", "😀"), ("\ude00\ud83d", "\ufffd\ufffd"), ("\udcff", "\ufffd")],
)
def test_halves_become_one_character_or_a_replacement(text: str, made: str):
    assert whole(text) == made


@attack(Attacker.PROGRAM, Door.TEXT)
@given(VALUES)
def test_any_value_is_written_as_json_that_every_reader_takes(value: object):
    for options in ({}, {"ensure_ascii": False}, {"indent": 1, "sort_keys": False}):
        raw = to_json(value, **options).encode()
        assert raw == to_json(json.loads(raw), **options).encode()


@given(VALUES)
def test_what_an_earlier_release_wrote_is_read_without_halves(value: object):
    json.dumps(from_json(json.dumps(value)), ensure_ascii=False).encode()


@attack(Attacker.PROGRAM, Door.BOUNDS)
def test_a_value_nested_without_end_is_cut():
    value: object = "inside"
    for _ in range(100_000):
        value = [value]
    assert TOO_DEEP in to_json(value)


def test_dataclasses_are_changed_in_all_their_parts():
    @dataclass(frozen=True)
    class Part:
        text: str
        more: tuple[str, ...] = ()
        facts: dict[str, str] | None = None

    same = Part("plain")
    assert in_all(same, whole) is same
    assert in_all([Part("x\ud83d", ("\ude00",), {"k\ud83d": "v"})], whole) == [
        Part("x\ufffd", ("\ufffd",), {"k\ufffd": "v"})
    ]


@given(ANY)
def test_what_is_recorded_holds_nothing_that_a_terminal_obeys(text: str):
    made = recorded(text)
    assert not [one for one in made if unicodedata.category(one) in ("Cc", "Cs") and one not in "\t\n\r"]
    assert recorded(made) == made


@pytest.mark.parametrize("text", SEEN)
def test_emoji_and_the_letters_of_every_language_are_shown_as_they_are(text: str):
    assert reveal(text) == text
    assert hidden_in(text) == []


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize(("first", "last"), HIDDEN)
@pytest.mark.parametrize("around", ["a{}b", "ä{}ö", "א{}ב", "{}", "//{}//", "😀{}x"])
def test_a_hidden_character_is_a_mark(first: int, last: int, around: str):
    for code in sorted({first, (first + last) // 2, last}):
        if code in (0xFE0E, 0xFE0F) and around.startswith("😀"):
            continue
        assert reveal(around.format(chr(code))) == around.format(f"<U+{code:04X}>")
        assert hidden_in(around.format(chr(code))) == [chr(code)]


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize("kind", ["Cc", "Cf", "Zl", "Zp"])
def test_every_control_and_format_character_of_unicode_is_a_mark(kind: str):
    """But the three of lines and tabs, and those that a screen shows."""
    all_ = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == kind]
    assert [one for one in all_ if reveal(f"a{one}b") == f"a{one}b" and one not in FORMAT_BUT_SEEN] == []


def test_a_half_of_a_character_is_shown_as_a_replacement():
    assert reveal("a\ud83db\u202e") == "a\N{REPLACEMENT CHARACTER}b<U+202E>"


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize(
    "text",
    [
        "a\u200db",
        "😀\u200d",
        "😀\u200d\u200d😀",
        "\u200d😀",
        "1\ufe0f",
        "می\u200c\u200cخ",
        "\U0001f3f4\U000e0067x",
        "x\U000e0100",
    ],
)
def test_a_joiner_that_joins_nothing_is_a_mark(text: str):
    assert "<U+" in reveal(text)
