"""Finds files of a worktree that are too large for a commit, and the words that keep git from reading them.

An agent can make a file of any size that takes no room on the disk, and git would read all of it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from legion.system import trees

LARGEST_FILE = 2 << 30
MOST_ENTRIES = 2_000
"""Entries that are looked at where nothing points to a large file."""
_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
ALL_BUT = ("--no-literal-pathspecs", "add", "--all", "--verbose", "--ignore-errors", *_FROM_STDIN)
"""Adds what `pathspecs` names on stdin, and names each entry of the index that it changes or removes.

Ends with 1 where git could not read a file; the others are added.
"""


def large_files(work_tree: Path, *, most: int | None = None) -> tuple[str, ...]:
    """Their paths, ignored or not, among the first `most` entries."""
    found = []
    for count, one in enumerate(trees.walk(work_tree, skip=(".git",))):
        if most is not None and count >= most:
            break
        if one.entry.is_file(follow_symlinks=False) and _is_large(one.facts):
            found.append(one.path)
    return tuple(sorted(found))


def pathspecs(left_out: Iterable[str]) -> bytes:
    """Everything but these paths."""
    return b"".join((b".\0", *(b":(exclude,literal)%s\0" % os.fsencode(path) for path in left_out)))


def _is_large(facts: os.stat_result | None) -> bool:
    return facts is not None and stat.S_ISREG(facts.st_mode) and facts.st_size > LARGEST_FILE
