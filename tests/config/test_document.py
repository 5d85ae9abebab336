"""docs/configuration.md is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from legion.config.document import blocks, refresh
from legion.config.files import project, user
from legion.domain.review.path_patterns import matches

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def test_the_tables_are_those_of_the_code():
    assert refresh(PAGE) == PAGE, "run: python -m legion.config.document docs/configuration.md"


def test_every_section_has_a_table():
    assert sorted(re.findall(r"<!-- settings: (.*) -->", PAGE)) == sorted(blocks())


def test_the_examples_are_valid():
    examples = re.findall(r"```toml\n(# .*?\n.*?)```", PAGE, re.DOTALL)
    assert [example.split("\n")[0] for example in examples] == ["# legion.toml", "# config.toml"]
    assert len(project.parse(examples[0], origin="x").checks) == 2
    own = user.parse(examples[1], origin="x")
    assert own.driver("") == own.drivers["helper"]


_ROWS = re.findall(
    r"^\| (`[^|]*`) \| (`[^|]*`) \| (`[^|]*`) \|$", PAGE.split("### Patterns")[1].split("\n## ")[0], re.M
)


@pytest.mark.parametrize(("patterns", "covered", "not_covered"), _ROWS)
def test_the_table_of_patterns_is_true(patterns, covered, not_covered):
    for pattern in re.findall("`([^`]*)`", patterns):
        assert all(matches(path, [pattern]) for path in re.findall("`([^`]*)`", covered))
        assert not any(matches(path, [pattern]) for path in re.findall("`([^`]*)`", not_covered))


def test_the_table_of_patterns_was_found():
    assert len(_ROWS) == 6
