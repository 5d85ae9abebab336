"""Patterns for paths: checked against the table in the documentation and against a slow, plainly right matcher."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.review.path_patterns import glob_fault, matches, undeclared

CASES = [
    ("docs", "docs/a/b.md", True),
    ("docs/", "docs/a.md", True),
    ("docs/**", "docs/a/b.md", True),
    ("docs", "docs", True),
    ("docs", "docs2/a.md", False),
    ("docs", "src/docs/a.md", False),
    ("docs/*", "docs/a.md", True),
    ("docs/*", "docs/a/b.md", False),
    ("*.py", "setup.py", True),
    ("*.py", "src/a.py", False),
    ("**/*.py", "setup.py", True),
    ("**/*.py", "src/x/a.py", True),
    ("**/*.py", "a.pyc", False),
    ("**", "anything/at/all", True),
    ("**/.gitattributes", "deep/er/.gitattributes", True),
    ("a/**/b", "a/b", True),
    ("a/**/b", "a/x/y/b", True),
    ("a/**/b", "a/x/y/c", False),
    ("a/**/b/**/c", "a/b/b/x/c", True),
    ("src/**/test_?.py", "src/test_a.py", True),
    ("src/**/test_?.py", "src/test_10.py", False),
    ("a?c", "a/c", False),
    ("a**c", "axxc", True),
    ("a**c", "ax/xc", False),
    ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
    ("app/[id]/page.tsx", "app/i/page.tsx", False),
    (".github", ".GITHUB/x.yml", False),
    ("a b/*", "a b/new\nline", True),
    ("*", "\udcff", True),
]


@pytest.mark.parametrize(("glob", "path", "covered"), CASES)
def test_a_pattern_covers_exactly_what_its_rules_say(glob, path, covered):
    assert matches(path, [glob]) is covered


def test_one_of_many_patterns_is_enough_and_none_covers_nothing():
    assert matches("b.txt", ["a.txt", "b.txt"])
    assert not matches("b.txt", [])


def _plainly(parts: tuple[str, ...], path: tuple[str, ...]) -> bool:
    @cache
    def letters(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return letters(pattern[1:], text) or (bool(text) and letters(pattern, text[1:]))
        return bool(text) and pattern[0] in ("?", text[0]) and letters(pattern[1:], text[1:])

    if not parts:
        return not path
    if parts[0] == "**":
        return _plainly(parts[1:], path) or (bool(path) and _plainly(parts, path[1:]))
    return bool(path) and letters(parts[0], path[0]) and _plainly(parts[1:], path[1:])


_pattern_part = st.one_of(st.just("**"), st.text("ab*?", min_size=1, max_size=5))
_path_part = st.text("ab", min_size=1, max_size=5)


@given(st.lists(_pattern_part, min_size=1, max_size=5), st.lists(_path_part, min_size=1, max_size=6))
def test_the_quick_matcher_agrees_with_the_plain_one(pattern, path):
    below = () if "*" in pattern[-1] or "?" in pattern[-1] else ("**",)
    assert matches("/".join(path), ["/".join(pattern)]) is _plainly((*pattern, *below), tuple(path))


def test_a_pattern_made_to_be_slow_is_answered_at_once():
    """Thousands of ways to match: trying them all would take longer than the universe lasts."""
    assert not matches("a" * 250, ["*a" * 60 + "*b"])
    assert not matches("/".join(["a"] * 400), ["/".join(["**", "a"] * 60) + "/b"])


@pytest.mark.parametrize("glob", ["", "  ", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\\b", "src/*.{ts,tsx}"])
def test_a_pattern_that_can_never_mean_what_was_meant_is_faulted(glob):
    assert glob_fault(glob)


@pytest.mark.parametrize(
    "glob", ["a", "a/", "**", "a/**/b", "{{name}}/x", "app/[id].tsx", "..a", ".github", "-x", "é*"]
)
def test_an_honest_pattern_has_no_fault(glob):
    assert glob_fault(glob) is None


def test_a_protected_path_must_be_declared_whatever_its_case():
    changed = ["src/a.py", ".GitHub/workflows/x.yml", "legion.toml", "deep/.gitattributes"]
    protected = [".github", "legion.toml", "**/.gitattributes"]
    assert undeclared(changed, protected, []) == (".GitHub/workflows/x.yml", "legion.toml", "deep/.gitattributes")
    assert undeclared(changed, protected, ["deep/**", "legion.toml"]) == (".GitHub/workflows/x.yml",)
    assert undeclared(changed, protected, [".github/**"]) == (
        ".GitHub/workflows/x.yml",
        "legion.toml",
        "deep/.gitattributes",
    )
