"""Finds files in a worktree that git cannot take into a commit: pipes, sockets, devices, and paths that are too long.

Git passes over them without a message. Knows nothing of the snapshot itself.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container, Sequence
from pathlib import Path

from legion.git.core.command import fields
from legion.git.hub.repository import Hub
from legion.git.trees.tree import Tree
from legion.system import trees

_MOST_ENTRIES = 20_000
"""Entries of a tree that are looked at; the rest of a very large tree is saved without this report."""
_MOST_FOUND = 50
_LONGEST_PATH = 4095
_SHOWN = 120
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_TOO_LONG = "a path that is too long"
_CLOSED = "a folder that cannot be read"


def unsaved(hub: Hub, work_tree: Path, *, skip: Container[str] = ()) -> dict[str, str]:
    """What each path is that git leaves out, except for ignored paths and those below the folders in `skip`.

    Paths that are too long are cut.
    """
    found: dict[str, str] = {}

    def note_closed(path: str, trouble: OSError) -> None:
        found[_cut(path)] = _TOO_LONG if trouble.errno == errno.ENAMETOOLONG else _CLOSED

    for count, one in enumerate(trees.walk(work_tree, skip=skip, unopened=note_closed)):
        if count >= _MOST_ENTRIES or len(found) >= _MOST_FOUND:
            break
        if len(os.fsencode(one.path)) > _LONGEST_PATH:
            found[_cut(one.path)] = _TOO_LONG
        elif (kind := _kind(one)) is not None:
            found[one.path] = kind
    kept = not_ignored(hub, work_tree, [path for path in found if not path.startswith(".git/")])
    return {path: found[path] for path in sorted(kept)}


def _kind(one: trees.Found) -> str | None:
    if one.entry.is_file(follow_symlinks=False) or one.entry.is_dir(follow_symlinks=False) or one.entry.is_symlink():
        return None
    facts = one.facts
    return _KINDS.get(stat.S_IFMT(facts.st_mode)) if facts is not None else None


def _cut(path: str) -> str:
    return path if len(path) <= _SHOWN else path[:_SHOWN].rpartition("/")[0] or path[:_SHOWN]


def not_ignored(hub: Hub, work_tree: Path, paths: Sequence[str]) -> list[str]:
    if not paths:
        return []
    tree = Tree(hub, work_tree, hub.path / "no-index")
    # This command refuses paths that are marked as literal, and takes them so anyway if they begin with a dot.
    asked = b"".join(b"./%s\0" % os.fsencode(path) for path in paths)
    words = ("--no-literal-pathspecs", "check-ignore", "--no-index", "-z", "--stdin")
    ignored = {os.fsdecode(path)[2:] for path in fields(tree.git(*words, stdin=asked, accept=(0, 1)).stdout)}
    return [path for path in paths if path not in ignored]
