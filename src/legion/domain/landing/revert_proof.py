"""Proof by reversal: what nobody misses when it is taken back is proven by nobody.

Two questions, answered without any model. Do the proofs fail on the code as it was before, with nothing but the new
tests added? And does anything fail when one hunk of the change is taken back?
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from legion.domain.review.diffs import FileDiff, Hunk
from legion.domain.review.path_patterns import matches
from legion.domain.review.protected_files import is_test

_WORDS_ONLY = ("**/*.md", "**/*.rst", "**/*.adoc", "**/LICENSE", "docs")
_SAYS_NOTHING = re.compile(r"^\s*(?:#(?!\[).*|//.*|/?\*.*|--.*)?$")
MOST_HUNKS = 200


@dataclass(frozen=True, kw_only=True)
class RevertHunk:
    """One hunk of one file, which can be taken back alone."""

    path: str
    line: int
    lines: int
    """How many lines it added, or took away where it added none."""
    patch: str


@dataclass(frozen=True, kw_only=True)
class RevertProof:
    """What came out of it."""

    idle: tuple[str, ...]
    """Commands that are green without the change, too."""
    unproven: tuple[RevertHunk, ...]
    tried: int
    left: int
    """Hunks for which no time was left."""


def pieces(change: Iterable[FileDiff]) -> tuple[RevertHunk, ...]:
    """What may be taken back: code, but neither tests nor words, nor what git shows no lines of."""
    return tuple(
        RevertHunk(
            path=file.path,
            line=hunk.place,
            lines=len(hunk.added) or len(hunk.removed),
            patch=f"{file.header}\n{hunk.text}",
        )
        for file in change
        if not is_test(file.path) and not matches(file.path, _WORDS_ONLY, any_case=True)
        for hunk in file.hunks
        if _says_something(hunk) and "\N{REPLACEMENT CHARACTER}" not in f"{file.header}{hunk.text}"
    )[:MOST_HUNKS]


def new_tests(change: Sequence[FileDiff]) -> tuple[str, ...]:
    """The test files that the change adds or adds to."""
    return tuple(file.path for file in change if is_test(file.path) and file.added and not file.gone)


def _says_something(hunk: Hunk) -> bool:
    return any(not _SAYS_NOTHING.match(line.text) for line in (*hunk.added, *hunk.removed))
