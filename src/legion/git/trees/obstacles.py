"""Finds what a reading git must not open in a worktree: files that are too large for a commit, and named pipes.

An agent can make a file of any size that takes no room on the disk, and git would read all of it. A pipe in the place
of a file that git reads by itself, such as `.gitignore`, makes it wait for ever.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.system import trees

LARGEST_FILE = 2 << 30
MOST_ENTRIES = 2_000
"""Entries that are looked at where nothing points to an obstacle."""
_MOST_IN_REPOSITORY = 20_000
_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
_ADD = ("--no-literal-pathspecs", "add", "--verbose", "--ignore-errors", *_FROM_STDIN)
ALL_BUT = (*_ADD, "--all")
"""Adds what `pathspecs` names on stdin, and names each entry of the index that it changes or removes.

Ends with 1 where git could not read a file; the others are added.
"""
CHANGES_BUT = (*_ADD, "--update")
"""The same without files that the index does not have."""


@dataclass(frozen=True, kw_only=True)
class Obstacles:
    """Paths, ignored or not."""

    large: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Named pipes that git would have opened."""


def obstacles(work_tree: Path, *, most: int | None = None, skip: Sequence[str] = (), rules: bool = True) -> Obstacles:
    """Among the first `most` entries, without those below the folders in `skip`. Named pipes that git would open are
    removed; git passes over others. Without `rules`, so is each .gitattributes: git then uses those of its index."""
    large, removed = [], []
    for path, facts in _files(work_tree, skip=(".git", *skip), most=most):
        if stat.S_ISREG(facts.st_mode) and facts.st_size > LARGEST_FILE:
            large.append(path)
        elif stat.S_ISFIFO(facts.st_mode) and any(part.startswith(".git") for part in path.split("/")):
            trees.remove_pipe(work_tree, path)
            removed.append(path)
        elif not rules and path.rpartition("/")[2] == ".gitattributes":
            (work_tree / path).unlink()
    return Obstacles(large=tuple(sorted(large)), removed=tuple(removed))


def remove_pipes(repository: Path) -> None:
    """Those in the `.git` of a worktree."""
    for path, facts in _files(repository, skip=(), most=_MOST_IN_REPOSITORY):
        if stat.S_ISFIFO(facts.st_mode):
            trees.remove_pipe(repository, path)


def _files(folder: Path, *, skip: tuple[str, ...], most: int | None) -> Iterator[tuple[str, os.stat_result]]:
    for one in itertools.islice(trees.walk(folder, skip=skip), most):
        if not (one.entry.is_dir(follow_symlinks=False) or one.entry.is_symlink()):
            facts = one.facts
            if facts is not None:
                yield one.path, facts


def pathspecs(left_out: Iterable[str]) -> bytes:
    """Everything but these paths."""
    return b"".join((b".\0", *(b":(exclude,literal)%s\0" % os.fsencode(path) for path in left_out)))


def exactly(path: str) -> str:
    """An ignore pattern that matches this path from the top and nothing else."""
    return "/" + re.sub(r"([\\*?\[\]! #])", r"\\\1", path.strip("/"))
