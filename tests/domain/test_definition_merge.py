"""Merging two changes of a file by definition, and what is refused."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.landing.definition_merge import Merged, NotMergeable, merge_three, merged

BASE = """\
import os
import sys


LIMIT = 3


class Cart:
    size = 1

    def __init__(self, name):
        self.name = name

    # How many there are.
    def count(self):
        return 0


def total(cart):
    return cart.count()


if __name__ == "__main__":
    total(Cart("a"))
"""


def both(mine: tuple[str, str], theirs: tuple[str, str], base: str = BASE, path: str = "cart.py") -> Merged:
    return merged(path, base, base.replace(*mine, 1), base.replace(*theirs, 1))


@pytest.mark.parametrize(
    ("mine", "theirs", "expected", "names"),
    [
        # One side each.
        (("return 0", "return 1"), ("cart.count()", "-cart.count()"), ("return 1", "-cart.count()"), ()),
        # Neighbouring definitions, which lines cannot tell apart.
        (
            ("        return 0\n", "        return 0\n\n    def empty(self):\n        return True\n"),
            ("        return 0\n", "        return 0\n\n    def full(self):\n        return False\n"),
            ("def empty", "def full"),
            (),
        ),
        # Parameters of one signature, and the lines behind them.
        (
            (
                "self, name):\n        self.name = name\n",
                "self, name, a=1):\n        self.name = name\n        self.a = a\n",
            ),
            (
                "self, name):\n        self.name = name\n",
                "self, name, b=2):\n        self.name = name\n        self.b = b\n",
            ),
            ("def __init__(self, name, a=1, b=2):", "self.a = a", "self.b = b"),
            ("Cart.__init__",),
        ),
        # Imports.
        (
            ("import os\n", "import os\nimport re\n"),
            ("import sys\n", "import sys\nimport time\n"),
            ("re", "time"),
            ("",),
        ),
        (
            ("import sys\n", "import sys\nimport re\n"),
            ("import sys\n", "import sys\nimport time\n"),
            ("re", "time"),
            ("",),
        ),
        # Different words of one line.
        (
            ("def total(cart):", "def total(cart: Cart):"),
            ("def total(cart):", "def total(cart) -> int:"),
            ("def total(cart: Cart) -> int:",),
            ("total",),
        ),
        # A definition that one side removes and the other leaves alone.
        (
            ("\n    # How many there are.\n    def count(self):\n        return 0\n", ""),
            ("size = 1", "size = 2"),
            ("size = 2",),
            (),
        ),
    ],
)
def test_what_both_sides_want_is_kept(mine, theirs, expected, names):
    for one, other in ((mine, theirs), (theirs, mine)):
        found = both(one, other)
        ast.parse(found.text)
        assert found.names == names
        for line in expected:
            assert line.replace(", a=1, b=2", "") in found.text.replace(", a=1, b=2", "").replace(", b=2, a=1", "")


def test_a_comment_above_a_definition_goes_with_it():
    mine = BASE.replace("    # How many there are.\n    def count", "    # All.\n    def count")
    theirs = BASE.replace("    # How many", "    def last(self):\n        return 9\n\n    # How many")
    assert "# All.\n    def count" in merged("cart.py", BASE, mine, theirs).text
    assert "def last" in merged("cart.py", BASE, mine, theirs).text


@pytest.mark.parametrize(
    ("mine", "theirs", "why"),
    [
        (("return 0", "return 1"), ("return 0", "return 2"), "both change the same words of Cart.count"),
        (("LIMIT = 3", "LIMIT = 4"), ("LIMIT = 3", "LIMIT = 5"), "both change the same words of lines outside"),
        (
            ("\n    # How many there are.\n    def count(self):\n        return 0\n", ""),
            ("return 0", "return 2"),
            "one side removes Cart.count that the other changes",
        ),
        (
            ("\n\ndef total", "\n\ndef new():\n    pass\n\n\ndef total"),
            ("\n\ndef total", "\n\ndef new():\n    return 1\n\n\ndef total"),
            "both add new",
        ),
        (("def total(cart):", "def total(cart:"), ("return 0", "return 2"), "a side of it is not valid"),
    ],
)
def test_what_cannot_be_told_is_refused_with_its_reason(mine, theirs, why):
    for one, other in ((mine, theirs), (theirs, mine)):
        with pytest.raises(NotMergeable, match=why):
            both(one, other)


def test_moved_definitions_are_refused():
    start, end = BASE.index("class Cart"), BASE.index("def total")
    behind = BASE.index("if __name__")
    moved = BASE[:start] + BASE[end:behind] + BASE[start:end] + BASE[behind:]
    with pytest.raises(NotMergeable, match="moves definitions"):
        merged("cart.py", BASE, moved, BASE.replace("return 0", "return 1"))


@pytest.mark.parametrize(
    ("path", "base", "mine", "theirs", "expected"),
    [
        (
            "a.toml",
            "[a]\nx = 1\n[b]\ny = 1\n",
            "[a]\nx = 2\n[b]\ny = 1\n",
            "[a]\nx = 1\n[b]\ny = 2\n",
            "[a]\nx = 2\n[b]\ny = 2\n",
        ),
        ("a.md", "# A\none\n# B\ntwo\n", "# A\n1\n# B\ntwo\n", "# A\none\n# B\n2", "# A\n1\n# B\n2\n"),
        (
            "a.json",
            '{\n  "a": 1,\n  "b": 1\n}\n',
            '{\n  "a": 2,\n  "b": 1\n}\n',
            '{\n  "a": 1,\n  "b": 2\n}\n',
            '{\n  "a": 2,\n  "b": 2\n}\n',
        ),
    ],
)
def test_sections_of_other_files(path, base, mine, theirs, expected):
    assert merged(path, base, mine, theirs).text == expected


def test_a_result_that_does_not_parse_is_refused():
    base = '{\n  "a": 1\n}\n'
    with pytest.raises(NotMergeable, match="not valid"):
        merged("a.json", base, '{\n  "a": 1,\n  "b": 2\n}\n', '{\n  "a": 1,\n  "c": 3\n}\n')


def test_other_kinds_of_files_and_large_ones_are_left_to_lines():
    for path, text in (("a.c", "int a;\n"), ("a.py", "a = 1\n" * 100_000)):
        with pytest.raises(NotMergeable, match="lines alone"):
            merged(path, text, text, text)


LINES = st.lists(st.sampled_from("abc"), max_size=6)


@given(LINES, LINES)
def test_a_side_that_changed_nothing_never_counts(base, side):
    assert merge_three(base, side, base) == merge_three(base, base, side) == merge_three(base, side, side) == side
