"""Which checks a change needs, by the files that it touches."""

from __future__ import annotations

import pytest

from legion.domain.checks import Check
from legion.domain.landing.queue import needed, seen_through

A = Check(name="a", command="test a", paths=("packages/a",))
B = Check(name="b", command="test b", paths=("packages/b", "packages/a"))
C = Check(name="c", command="test c", paths=("services/*.go",))
ALWAYS = Check(name="lint", command="lint")


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (["packages/a/x.py"], "a b lint"),
        (["packages/b/x.py"], "b lint"),
        (["services/x.go"], "c lint"),
        (["packages/b/x.py", "services/x.go"], "b c lint"),
        (["packages/b/x.py", "lock.json"], "a b c lint"),
        (["services/deep/x.go"], "a b c lint"),
        (["packages/abc"], "a b c lint"),
        ([], "a b c lint"),
    ],
)
def test_a_check_is_left_out_only_if_all_files_belong_to_others(changed: list[str], names: str):
    assert [check.name for check in needed([A, B, C, ALWAYS], changed)] == names.split()


def test_without_paths_every_check_is_needed():
    assert needed([ALWAYS], ["x"]) == (ALWAYS,)


def test_a_pattern_that_starts_with_a_wildcard_names_no_file_for_others():
    lint = Check(name="lint", command="lint", paths=("**/*.py",))
    assert [check.name for check in needed([A, lint], ["conftest.py"])] == ["a", "lint"]


@pytest.mark.parametrize(
    ("links", "names"),
    [
        ({"packages/b/lib": "../a/lib"}, {"packages/a/lib/x", "packages/b/lib/x"}),
        ({"packages/b/one": "../a/lib/x"}, {"packages/a/lib/x", "packages/b/one"}),
        ({"packages/b/lib": "../a/other"}, {"packages/a/lib/x"}),
        ({"l": "m/lib", "m": "packages/a"}, {"packages/a/lib/x", "m/lib/x", "l/x"}),
    ],
)
def test_a_file_is_seen_through_links(links: dict[str, str], names: set[str]):
    assert set(seen_through(links, ["packages/a/lib/x"])) == names


def test_links_in_a_circle_end():
    assert "a/b" in seen_through({"a/self": ".", "b": "b"}, ["a/b"])
