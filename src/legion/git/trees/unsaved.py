"""Files in a worktree that git cannot take into a commit: pipes, sockets, paths; and merges that were not completed.

Git passes over them without a message. Knows nothing of the snapshot itself.

Reads names of files only: no git runs on the agent's repository.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container, Sequence
from enum import Enum
from pathlib import Path, PurePosixPath

from legion.git.core.command import fields
from legion.git.trees.live import LiveTree
from legion.system import trees

_MOST_ENTRIES = 20_000
"""Entries of a tree that are looked at; the rest of a very large tree is saved without this report."""
_MOST_FOUND = 50
_LONGEST_PATH = 4095
_SHOWN = 120
_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_TOO_LONG = "a path that is too long"
_CLOSED = "a folder that cannot be read"


def unsaved(tree: LiveTree, *, skip: Container[str] = ()) -> dict[str, str]:
    """What each path is that git leaves out, except for ignored paths and those below the folders in `skip`.

    Paths that are too long are cut.
    """
    found: dict[str, str] = {}

    def note_closed(path: str, trouble: OSError) -> None:
        found[_cut(path)] = _TOO_LONG if trouble.errno == errno.ENAMETOOLONG else _CLOSED

    for count, one in enumerate(trees.walk(tree.path, skip=skip, unopened=note_closed)):
        if count >= _MOST_ENTRIES or len(found) >= _MOST_FOUND:
            break
        if len(os.fsencode(one.path)) > _LONGEST_PATH:
            found[_cut(one.path)] = _TOO_LONG
        elif (kind := _kind(one)) is not None:
            found[one.path] = kind
    kept = not_ignored(tree, [path for path in found if not path.startswith(".git/")])
    return {path: found[path] for path in sorted(kept)}


def _kind(one: trees.Found) -> str | None:
    if one.entry.is_file(follow_symlinks=False) or one.entry.is_dir(follow_symlinks=False) or one.entry.is_symlink():
        return None
    facts = one.facts
    return _KINDS.get(stat.S_IFMT(facts.st_mode)) if facts is not None else None


def _cut(path: str) -> str:
    return path if len(path) <= _SHOWN else path[:_SHOWN].rpartition("/")[0] or path[:_SHOWN]


def not_ignored(tree: LiveTree, paths: Sequence[str]) -> list[str]:
    ignored = {path for _, path in _ignored(tree, paths)}
    return [path for path in paths if path not in ignored]


def kept_out(tree: LiveTree, paths: Sequence[str]) -> tuple[str, ...]:
    """Of these paths in the tree, those that nothing but the hub's own exclude file keeps out of changes."""
    return tuple(path for rules, path in _ignored(tree, paths) if rules.endswith(b"/info/exclude"))


def _ignored(tree: LiveTree, paths: Sequence[str]) -> list[tuple[bytes, str]]:
    """Those of the paths that are ignored, each with the file whose rule says so."""
    # Git refuses to look behind a link, and then says nothing about the others.
    paths = [path for path in paths if not _is_behind_link(tree.path, path)]
    if not paths:
        return []
    # This command refuses paths that are marked as literal, and takes them so anyway if they begin with a dot.
    asked = b"".join(b"./%s\0" % os.fsencode(path) for path in paths)
    words = ("--no-literal-pathspecs", "check-ignore", "--no-index", "--verbose", "-z", "--stdin")
    told = fields(tree.ask(*words, stdin=asked, accept=(0, 1)).stdout)
    found = zip(told[::4], told[2::4], told[3::4], strict=True)
    # It also names the rule by which a path is not ignored.
    return [(rules, os.fsdecode(path)[2:]) for rules, rule, path in found if not rule.startswith(b"!")]


def _is_behind_link(top: Path, path: str) -> bool:
    above = (trees.facts(top, str(folder)) for folder in PurePosixPath(path).parents if folder.name)
    return any(facts is not None and stat.S_ISLNK(facts.st_mode) for facts in above)


class GitOperation(Enum):
    """What was started, and how git completes it or takes it back."""

    MERGE = "merge"
    REBASE = "rebase"
    CHERRY_PICK = "cherry-pick"
    REVERT = "revert"
    BISECT = "bisect"

    @property
    def remedy(self) -> str:
        if self is GitOperation.BISECT:
            return "`git bisect reset` ends it"
        return f"`git {self.value} --continue` completes it, `git {self.value} --abort` takes it back"


_SIGNS = {
    "MERGE_HEAD": GitOperation.MERGE,
    "rebase-merge": GitOperation.REBASE,
    "rebase-apply": GitOperation.REBASE,
    "CHERRY_PICK_HEAD": GitOperation.CHERRY_PICK,
    "REVERT_HEAD": GitOperation.REVERT,
    "BISECT_LOG": GitOperation.BISECT,
}


def unfinished(work_tree: Path) -> GitOperation | None:
    """The operation that is in progress in the repository of this worktree."""
    there = trees.names(work_tree, ".git")
    return next((operation for sign, operation in _SIGNS.items() if sign in there), None)
