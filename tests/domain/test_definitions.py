"""The definitions in a file: which lines are whose, and what a change touches."""

from __future__ import annotations

import pytest

from legion.domain.landing.definitions import changed, definitions, names_at

PYTHON = """\
import os


class Parser:
    kind = "plain"

    @property
    def name(self):
        return self.kind

    def __init__(self, text):
        self.text = text


if os.name:
    def helper():
        return 1
"""


def test_lines_belong_to_the_innermost_definition():
    found = definitions("src/parser.py", PYTHON)
    assert names_at(found, 7, 7) == ("Parser.name",), "a decorator is part of it"
    assert names_at(found, 12, 12) == ("Parser.__init__",)
    assert names_at(found, 5, 5) == ("Parser",)
    assert names_at(found, 9, 11) == ("Parser.name", "Parser.__init__")
    assert names_at(found, 17, 17) == ("helper",)
    assert names_at(found, 1, 1) == ()


def test_a_change_of_a_method_does_not_touch_its_class():
    after = PYTHON.replace("self, text", "self, text, more")
    assert set(changed("a.py", PYTHON, after)) == {"Parser.__init__"}
    assert changed("a.py", PYTHON, after)["Parser.__init__"][0].startswith("    def __init__(self, text):")
    added = PYTHON + "\n\ndef new():\n    return 2\n"
    assert changed("a.py", PYTHON, added) == {"new": ("", "def new():\n    return 2\n")}


@pytest.mark.parametrize(
    ("path", "before", "after", "name"),
    [
        ("a.toml", "[one]\na = 1\n[two]\nb = 1\n", "[one]\na = 1\n[two]\nb = 2\n", "two"),
        ("a.md", "# One\ntext\n## Two\nmore\n", "# One\ntext\n## Two\nless\n", "Two"),
        ("a.json", '{\n  "one": 1,\n  "two": 2\n}\n', '{\n  "one": 1,\n  "two": 3\n}\n', "two"),
    ],
)
def test_sections_of_other_files(path: str, before: str, after: str, name: str):
    assert set(changed(path, before, after)) == {name}


@pytest.mark.parametrize("text", ["def broken(:\n", "\0", "(" * 5000])
def test_what_cannot_be_read_has_no_definitions(text: str):
    assert definitions("a.py", text) == ()
    assert definitions("a.bin", text) == ()
