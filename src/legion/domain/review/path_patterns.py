"""Patterns for paths inside a repository, as `protect` and a ticket's `files` use them. Touches no disk.

A path is written from the root of the repository with `/` between its parts, as git lists it. A pattern:

    *      any characters within one part, also none
    ?      exactly one character within one part
    **     as a complete part: any number of parts, also none (inside a part it is the same as *)
    rest   itself; there are no classes, braces or escapes, so `app/[id]/page.tsx` means just that

Every pattern starts at the root: `*.py` covers the root alone, `**/*.py` every folder. A pattern whose last part has no
wildcard also covers everything below it: `docs`, `docs/` and `docs/**` cover `docs/a/b.md`, `docs/*` does not. Case
matters, except for protected paths: there `.GitHub` counts as `.github`, since some file systems treat them as the
same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

_Part = TypeVar("_Part")


def matches(path: str, globs: Iterable[str], *, any_case: bool = False) -> bool:
    """Does one of the patterns cover the path?"""
    if any_case:
        path, globs = path.casefold(), map(_folded, globs)
    # Most patterns name something that most paths do not hold, and a change may have thousands of paths.
    return any(_longest_text(glob) in path and _covers(glob, path) for glob in globs)


@functools.lru_cache(maxsize=4096)
def _folded(glob: str) -> str:
    return glob.casefold()


@functools.lru_cache(maxsize=4096)
def _longest_text(glob: str) -> str:
    """The longest piece of a pattern without wildcards: every path that it covers holds that."""
    return max(re.split(r"[*?/]+", glob), key=len)


def extension(path: str) -> str:
    """What follows the last dot of the file's name, in small letters; empty for none and for a hidden file."""
    stem, _, last = path.rpartition("/")[2].rpartition(".")
    return last.casefold() if stem else ""


def meet(some: Iterable[str], others: Iterable[str]) -> bool:
    """Can there be a path that both lists of patterns cover?"""
    theirs = [_parts(glob) for glob in others]
    return any(_both(_parts(one), other, "**".__eq__, _parts_meet) for one in some for other in theirs)


def undeclared(changed: Iterable[str], protected: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    """The changed paths that are protected and that the ticket's `files` do not name."""
    return tuple(path for path in changed if matches(path, protected, any_case=True) and not matches(path, declared))


def glob_fault(glob: str) -> str | None:
    """What is wrong with a pattern, as the end of a sentence; None where nothing is."""
    parts = glob.removesuffix("/").split("/")
    if not glob.strip():
        return "is empty, and would cover nothing"
    if glob.startswith("/"):
        return "starts with a slash, but paths are written from the root of the repository"
    if any(part in ("", ".", "..") for part in parts):
        return "has an empty part, `.` or `..` in it, which no path has"
    if "\\" in glob:
        return "has a backslash in it, but parts are divided by `/`"
    opened = glob.find("{")
    if opened >= 0 and "," in glob[opened : glob.find("}", opened)]:
        return "uses braces for a choice, so write one pattern for each instead"
    return None


def _parts(glob: str) -> list[str]:
    parts = glob.removesuffix("/").split("/")
    return parts if _has_wildcard(parts[-1]) else [*parts, "**"]


def _parts_meet(one: str, other: str) -> bool:
    return _both(one, other, "*".__eq__, lambda letter, another: letter == another or "?" in (letter, another))


def _both(
    one: Sequence[_Part], other: Sequence[_Part], is_star: Callable[[_Part], bool], fits: Callable[[_Part, _Part], bool]
) -> bool:
    """Can one text match both patterns? At most len(one) * len(other) steps."""
    # Row by row from the end: do the remaining parts from here on have something in common?
    below = [False] * (len(other) + 1)
    for here in range(len(one), -1, -1):
        row = [False] * (len(other) + 1)
        for there in range(len(other), -1, -1):
            mine, theirs = here < len(one), there < len(other)
            if not mine and not theirs:
                row[there] = True
            elif mine and is_star(one[here]):
                row[there] = below[there] or (theirs and row[there + 1])
            elif theirs and is_star(other[there]):
                row[there] = row[there + 1] or (mine and below[there])
            else:
                row[there] = mine and theirs and fits(one[here], other[there]) and below[there + 1]
        below = row
    return below[0]


def _covers(glob: str, path: str) -> bool:
    return _wild(_parts(glob), path.split("/"), lambda part: part == "**", _part_fits)


def _has_wildcard(part: str) -> bool:
    return "*" in part or "?" in part


def _part_fits(pattern: str, part: str) -> bool:
    return _wild(pattern, part, lambda letter: letter == "*", lambda letter, other: letter in ("?", other))


def _wild(
    pattern: Sequence[_Part],
    given: Sequence[_Part],
    is_star: Callable[[_Part], bool],
    fits: Callable[[_Part, _Part], bool],
) -> bool:
    """Match with stars in at most len(pattern) * len(given) steps: both are untrusted.

    Backtracking to the last star alone is enough, since an earlier one could only match what the last one can.
    """
    here = there = 0
    star = -1
    resume = 0
    while there < len(given):
        if here < len(pattern) and is_star(pattern[here]):
            star, resume = here, there
            here += 1
        elif here < len(pattern) and fits(pattern[here], given[there]):
            here += 1
            there += 1
        elif star >= 0:
            resume += 1
            here, there = star + 1, resume
        else:
            return False
    return all(is_star(left) for left in pattern[here:])
