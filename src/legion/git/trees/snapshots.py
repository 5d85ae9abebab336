"""Saving what an agent left in its tree, without ever running git on the agent's own .git.

The hub is the repository, the index is ours, and the tree is only data: no filter, hook or monitor of the agent has
anywhere to stand. Does not know what a ticket is.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import as_text, fields
from legion.git.core.errors import GitTimedOut, TreeGone
from legion.git.hub.objects import Signature, write_commit
from legion.git.hub.repository import Hub
from legion.git.trees.large_files import ALL_BUT, MOST_ENTRIES, large_files, pathspecs
from legion.git.trees.tree import Tree
from legion.git.trees.unsaved import not_ignored
from legion.system import crash
from legion.system.crash import Point
from legion.system.process import FinishedProcess

_GITLINK = b"160000"


@dataclass(frozen=True, kw_only=True)
class TreeSnapshot:
    """What a tree held. Where nothing differs from the parent, `commit` is the parent itself.

    `nested` names repositories inside the tree, `unreadable` files that git could not read, `large` those that are too
    large for a commit: all of them stay on disk only.
    """

    commit: str
    tree: str
    changed: bool
    nested: tuple[str, ...]
    unreadable: tuple[str, ...]
    large: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()
    """Submodules that were changed; their entries stay as the parent has them."""


def snapshot(
    hub: Hub,
    work_tree: Path,
    index_file: Path,
    *,
    parent: str,
    message: str,
    author: Signature,
    when: int,
    timeout: float = 600.0,
) -> TreeSnapshot:
    """Store all files that are not ignored as a commit on `parent`. The same input gives the same commit.

    Submodules stay as the parent has them. `when` is in seconds since 1970.
    """
    if work_tree.is_symlink() or not work_tree.is_dir():
        raise TreeGone(f"The worktree {work_tree} is not a folder any more, so nothing could be saved from it.")
    with _own_copy(index_file) as index:
        seen = Tree(hub, work_tree, index)
        # Starting from the parent each time makes the result depend on nothing but the parent and the files.
        seen.describe(parent)
        added, large = _add(seen, timeout)
        before = hub.tree_of(parent)
        # It names each entry of the index that it changes or removes.
        tree = seen.git("write-tree").text.strip() if added.stdout else before
        nested, submodules, repairs = _gitlinks(hub, before, tree)
        if repairs:
            seen.git("update-index", "-z", "--replace", "--index-info", stdin=repairs)
            tree = seen.git("write-tree").text.strip()
        if (work_tree / ".gitmodules").exists():
            submodules += _filled(seen)
        unreadable: list[bytes] = []
        if added.code != 0:
            for path in fields(seen.git("ls-files", "-z", "--others", "--exclude-standard").stdout):
                (nested if path.endswith(b"/") else unreadable).append(path.rstrip(b"/"))
            unreadable += fields(seen.git("diff-files", "-z", "--name-only", "--ignore-submodules").stdout)
        large = not_ignored(hub, work_tree, large)
    changed = tree != before
    crash.reach(Point.GIT_SNAPSHOT_BEFORE_COMMIT)
    commit = parent
    if changed:
        stamp = author.stamp(when)
        commit = write_commit(hub, tree=tree, parents=(parent,), author=stamp, committer=stamp, message=message)
    crash.reach(Point.GIT_SNAPSHOT_AFTER_COMMIT)
    return TreeSnapshot(
        commit=commit,
        tree=tree,
        changed=changed,
        nested=tuple(sorted(as_text(path) for path in set(nested))),
        unreadable=tuple(sorted(as_text(path) for path in set(unreadable) - set(map(os.fsencode, large)))),
        large=tuple(large),
        submodules=tuple(sorted(as_text(path) for path in set(submodules))),
    )


def _add(seen: Tree, timeout: float) -> tuple[FinishedProcess, Sequence[str]]:
    """Everything but files that are too large, and those. In a very large tree they are searched once git was slow."""
    large = large_files(seen.path, most=MOST_ENTRIES)
    try:
        return seen.git(*ALL_BUT, stdin=pathspecs(large), timeout=timeout, accept=(0, 1)), large
    except GitTimedOut:
        before, large = large, large_files(seen.path)
        if large == before:
            raise
        return seen.git(*ALL_BUT, stdin=pathspecs(large), timeout=timeout, accept=(0, 1)), large


@contextlib.contextmanager
def _own_copy(index_file: Path) -> Iterator[Path]:
    """Work on a copy and put it back when all went well: no lock to be left behind, no half-written index."""
    index_file.parent.mkdir(parents=True, exist_ok=True)
    copy = index_file.with_name(f".{index_file.name}.{uuid.uuid4().hex}")
    try:
        with contextlib.suppress(FileNotFoundError):
            # The time of an index decides which files git looks at twice, so the copy keeps it.
            shutil.copy2(index_file, copy)
        yield copy
        copy.replace(index_file)
    finally:
        for rest in (copy, copy.with_name(f"{copy.name}.lock")):
            rest.unlink(missing_ok=True)


def _filled(seen: Tree) -> list[bytes]:
    """Submodules whose folder holds files but no repository: git skips such a folder and reports nothing."""
    entries = fields(seen.git("ls-files", "--stage", "-z").stdout)
    paths = [entry.split(b"\t", 1)[1] for entry in entries if entry.startswith(_GITLINK)]
    places = {path: seen.path / os.fsdecode(path) for path in paths}
    return [path for path, place in places.items() if _holds_files(place)]


def _holds_files(place: Path) -> bool:
    try:
        names = {inside.name for inside in place.iterdir()}
    except OSError:
        return False
    return bool(names) and ".git" not in names


def _gitlinks(hub: Hub, before: str, tree: str) -> tuple[list[bytes], list[bytes], bytes]:
    """Nested repositories in the new tree, changed submodules, and the index entries that take back both."""
    nested, submodules, repairs = [], [], b""
    for path, old, new in hub.differences(before, tree) if tree != before else ():
        if old is not None and old.mode == _GITLINK:
            submodules.append(path)
            repairs += b"%s %s\t%s\0" % (old.mode, old.id.encode(), path)
        elif new is not None and new.mode == _GITLINK:
            nested.append(path)
            repairs += b"0 %s\t%s\0" % (b"0" * len(new.id), path)
    return nested, submodules, repairs
