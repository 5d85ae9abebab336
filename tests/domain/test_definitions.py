"""The definitions in a file: which lines are whose, and what a change touches."""

from __future__ import annotations

import pytest

from legion.domain.landing.definitions import changed, claims, definitions, meeting, named_in, names_at

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


FILES = {
    "src/cart.py": ("Cart", "Cart.__init__", "Cart.total", "do_total"),
    "src/money.py": ("Money", "Money.__init__", "round"),
    "src/show.py": ("show", "Page", "Page.round", "Page.show"),
}


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("Give `Cart.__init__()` a tax.", {"src/cart.py::Cart.__init__"}),
        ("Cart.total and Cart should know a tax.", {"src/cart.py::Cart.total"}),
        ("Mend `round` in src/money.py.", {"src/money.py::round"}),
        ("Mend `round`.", {"src/money.py::round", "src/show.py::Page.round"}),
        ("Mend the rounding in `money.py`.", {"src/money.py::"}),
        ("`total` in cart.py is wrong", {"src/cart.py::Cart.total", "src/cart.py::do_total"}),
        ("Put Money into the cart and round it.", set()),
        ("Write `Discount`:\n```python\nCart.total\n```\n", set()),
    ],
)
def test_a_text_claims_what_it_names_as_code(text: str, claimed: set[str]):
    assert claims(named_in(text), FILES) == claimed


def test_a_name_that_many_define_means_none_of_them():
    files = {f"{name}.py": (f"{name}.run",) for name in "abcd"}
    assert claims(named_in("Make `run` faster."), files) == set()
    assert claims(named_in("Make `run` of b.py faster."), files) == {"b.py::b.run"}


def test_claims_meet_in_a_part_of_the_whole():
    assert meeting({"a.py::A"}, {"a.py::A.f"}) == {"a.py::A"}
    assert meeting({"a.py::A.f"}, {"a.py::A"}) == {"a.py::A.f"}
    assert meeting({"a.py::A.f", "a.py::B"}, {"a.py::"}) == {"a.py::A.f", "a.py::B"}
    assert not meeting({"a.py::A.f"}, {"a.py::A.g", "b.py::A.f", "a.py::A.f2"})
