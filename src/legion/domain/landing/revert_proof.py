"""Proof by reversal: if the tests still pass without a hunk, no test covers it.

Two questions, answered without a model. Do the proofs fail on the old code with only the new tests added? And does any
proof fail if one hunk of the change is reverted?
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from legion.domain.review.diffs import FileDiff, Hunk
from legion.domain.review.path_patterns import matches
from legion.domain.review.protected_files import deciding, is_test

_DOCUMENTS = ("**/*.md", "**/*.rst", "**/*.adoc", "**/LICENSE", "docs")
_NO_CODE = re.compile(r"^\s*(?:#(?!\[).*|//.*|/?\*.*|--.*)?$")
MOST_HUNKS = 200


@dataclass(frozen=True, kw_only=True)
class RevertHunk:
    """One hunk of one file, which can be reverted alone."""

    path: str
    line: int
    lines: int
    """How many lines it added, or removed if it added none."""
    patch: str


@dataclass(frozen=True, kw_only=True)
class RevertProof:
    """The result for one change."""

    idle: tuple[str, ...]
    """Commands that pass without the change, too."""
    red: tuple[str, ...]
    """Commands that fail without it, as they should."""
    unproven: tuple[RevertHunk, ...]
    tried: int
    left: int
    """Hunks for which no time was left."""


def revertable_hunks(change: Iterable[FileDiff]) -> tuple[RevertHunk, ...]:
    """Hunks that may be reverted: code, but no tests, no documents, and no binary files."""
    return tuple(
        RevertHunk(
            path=file.path,
            line=hunk.place,
            lines=len(hunk.added) or len(hunk.removed),
            patch=f"{file.header}\n{hunk.text}",
        )
        for file in change
        if not is_test(file.path) and not matches(file.path, _DOCUMENTS, any_case=True)
        for hunk in file.hunks
        if _has_code(hunk) and "\N{REPLACEMENT CHARACTER}" not in f"{file.header}{hunk.text}"
    )[:MOST_HUNKS]


def new_tests(change: Sequence[FileDiff], commands: Iterable[str]) -> tuple[str, ...]:
    """The test files that the change adds or adds to, and the scripts and recipes of its that these commands run."""
    scripts = deciding(commands)
    added = [file.path for file in change if file.added and not file.gone]
    return tuple(path for path in added if is_test(path) or matches(path, scripts, any_case=True))


def _has_code(hunk: Hunk) -> bool:
    return any(not _NO_CODE.match(line.text) for line in (*hunk.added, *hunk.removed))
