"""Conflict markers: three of an agent's own merge in order, or one that Legion planted; every subset and order."""

from __future__ import annotations

import itertools

import pytest

from legion.domain.review.additions import marked, may_hold
from legion.domain.review.diffs import DiffLine, FileDiff, Hunk

OPENS, MIDDLE, CLOSES = "<<<<<<< HEAD", "=======", ">>>>>>> feature"


def adding(path: str, *lines: str) -> FileDiff:
    added = tuple(DiffLine(number=number, text=text) for number, text in enumerate(lines, 1))
    return FileDiff(path=path, hunks=(Hunk(removed=(), added=added, text=""),))


def test_only_all_three_in_order_are_a_merge():
    for count in range(4):
        for lines in itertools.permutations((OPENS, MIDDLE, CLOSES), count):
            among = [one for line in lines for one in ("x = 1", line)]
            assert marked([adding("src/a.py", *among)]) == (("src/a.py",) if lines == (OPENS, MIDDLE, CLOSES) else ())


@pytest.mark.parametrize("path", ["README.md", "docs/merging.rst", "tests/test_merge.py", "fix.patch"])
def test_documents_and_tests_may_be_about_merging(path: str):
    assert marked([adding(path, OPENS, MIDDLE, CLOSES)]) == ()
    assert marked([adding(path, "<<<<<<< target")]) == (path,)


@pytest.mark.parametrize("line", ["<<<<<<< target", ">>>>>>> change", "<<<<<<<<< target"])
def test_a_planted_marker_alone_is_enough(line: str):
    assert marked([adding("a.py", line), adding("b.py", "x")]) == ("a.py",)


@pytest.mark.parametrize("line", ["<<<<<<<x", "a <<<<<<< HEAD", "======= title", "<<<<<< HEAD"])
def test_other_lines_are_no_markers(line: str):
    assert marked([adding("a.py", line, MIDDLE, CLOSES)]) == ()


def test_a_patch_without_added_markers_is_not_parsed():
    assert may_hold("diff\n+<<<<<<< HEAD\n")
    assert may_hold("diff\n+>>>>>>> change\n")
    assert not may_hold("diff\n <<<<<<< HEAD\n-<<<<<<< HEAD\n+x <<<<<<< HEAD\n+=======\n")
