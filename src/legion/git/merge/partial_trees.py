"""Trees made without a checkout: a commit without one hunk, with files of another, or merged with different paths.

with other contents.

Most changes of a batch are so. Without a removed path there is no rename, so git would do nothing but join the two
lists of paths either. Everything else is left to git, and so are histories that are not plain.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from legion.git.core.command import git
from legion.git.core.history import FOLDER, GITLINK, TreeEntry
from legion.git.hub.objects import read_blobs, read_commit, store_object, tree_entries, write_tree
from legion.git.hub.repository import Hub

_FILES = ("100644", "100755")
_LINK = "120000"


def without(hub: Hub, commit: str, patch: str) -> str | None:
    """The tree of `commit` with the patch taken back; None where git cannot take it back."""
    with _index(hub) as index:
        git("read-tree", commit, git_dir=hub.path, index=index)
        words = ("apply", "--cached", "--reverse", "--unidiff-zero", "--whitespace=nowarn", "-")
        done = git(*words, git_dir=hub.path, index=index, stdin=patch.encode(), accept=(0, 1, 128))
        return git("write-tree", git_dir=hub.path, index=index).text.strip() if done.code == 0 else None


def with_files(hub: Hub, base: str, source: str, paths: Sequence[str]) -> str:
    """The tree of `base` with these files as they are in `source`."""
    with _index(hub) as index:
        git("read-tree", base, git_dir=hub.path, index=index)
        if paths:
            entries = git("ls-tree", "-r", "-z", "--end-of-options", source, *paths, git_dir=hub.path).stdout
            git("update-index", "-z", "--index-info", git_dir=hub.path, index=index, stdin=entries)
        return git("write-tree", git_dir=hub.path, index=index).text.strip()


def with_contents(hub: Hub, commit: str, contents: Mapping[str, bytes]) -> str:
    """The tree of `commit` with other contents of these files. Each keeps its mode."""
    modes = {os.fsdecode(path): mode for mode, _, path in tree_entries(_list(hub, commit)) if mode in _FILES}
    # Nothing refers to them, so nothing is lost with them.
    new = {
        path: store_object(hub.objects, b"blob", content, digits=len(commit), durable=False)
        for path, content in contents.items()
    }
    lines = (f"{modes[path]} {id}\t".encode() + os.fsencode(path) for path, id in new.items())
    entries = b"".join(line + b"\0" for line in lines)
    with _index(hub) as index:
        git("read-tree", commit, git_dir=hub.path, index=index)
        git("update-index", "-z", "--index-info", git_dir=hub.path, index=index, stdin=entries)
        return git("write-tree", git_dir=hub.path, index=index).text.strip()


def tracked(hub: Hub, commit: str) -> dict[str, str]:
    """The paths of all plain files of a commit, and the ids of their contents."""
    return {os.fsdecode(path): id for mode, id, path in tree_entries(_list(hub, commit)) if mode in _FILES}


def links(hub: Hub, commit: str) -> dict[str, str]:
    """The links of a commit, and where each leads."""
    found = [(os.fsdecode(path), id) for mode, id, path in tree_entries(_list(hub, commit)) if mode == _LINK]
    contents = read_blobs(hub, [id for _, id in found])
    return {path: os.fsdecode(content) for (path, _), content in zip(found, contents, strict=True)}


def _list(hub: Hub, commit: str) -> bytes:
    return git("ls-tree", "-r", "-z", "--end-of-options", commit, git_dir=hub.path).stdout


@contextlib.contextmanager
def _index(hub: Hub) -> Iterator[Path]:
    place = hub.path / "merging" / f"{uuid.uuid4().hex}.index"
    place.parent.mkdir(exist_ok=True)
    try:
        yield place
    finally:
        place.unlink(missing_ok=True)


_MOST_COMMITS = 100
"""Commits that are walked on each side in search of the common one."""
_MOST_PATHS = 300


def merge_separate(hub: Hub, target: str, change: str) -> str | None:
    """The merged tree; None where git has to be asked. Both commits are complete ids."""
    base = common_commit(hub, target, change)
    if base is None:
        return None
    before, mine = hub.tree_of(base), hub.tree_of(target)
    theirs = _changed(hub, before, hub.tree_of(change))
    ours = _changed(hub, before, mine) if theirs is not None else None
    if theirs is None or ours is None or overlap(frozenset(ours), frozenset(theirs)):
        return None
    return _with_entries(hub, mine, theirs)


def common_commit(hub: Hub, target: str, change: str) -> str | None:
    """The only best common ancestor; None where the walk is long or another one is possible.

    It is on the line of first parents of the change. All ancestors of the target are visited down to this line. Above
    the commit that is found there the line must contain no merge: every other common ancestor is then one of its own.
    """
    line: dict[str, int] = {}
    merges: list[int] = []
    at: str | None = change
    while at is not None and len(line) < _MOST_COMMITS:
        parents = _parents(hub.path, at)
        if len(parents) > 1:
            merges.append(len(line))
        line[at] = len(line)
        at = parents[0] if parents else None
    waiting, seen, found = [target], {target}, list[int]()
    while waiting:
        commit = waiting.pop()
        if commit in line:
            found.append(line[commit])
            continue
        new = [parent for parent in _parents(hub.path, commit) if parent not in seen]
        seen.update(new)
        waiting += new
        if len(seen) > _MOST_COMMITS:
            return None
    first = min(found, default=None)
    if first is None or any(merge < first for merge in merges):
        return None
    return next(commit for commit, position in line.items() if position == first)


@functools.lru_cache(maxsize=1024)
def _parents(hub: Path, commit: str) -> tuple[str, ...]:
    return read_commit(Hub(hub), commit).parents


def _changed(hub: Hub, before: str, after: str) -> dict[bytes, TreeEntry] | None:
    """The new entries by path; None where a path was removed, a submodule changed, or there are many."""
    found: dict[bytes, TreeEntry] = {}
    for path, old, new in itertools.islice(hub.differences(before, after), _MOST_PATHS + 1):
        if new is None or GITLINK in (new.mode, old.mode if old is not None else b""):
            return None
        found[path] = new
    return found if len(found) <= _MOST_PATHS else None


def _with_entries(hub: Hub, tree: str, changes: Mapping[bytes, TreeEntry]) -> str:
    """The tree with these entries, below new folders too. An empty id is a folder that is not there yet."""
    if not changes:
        return tree
    entries = hub.entries(tree) if tree else {}
    below: dict[bytes, dict[bytes, TreeEntry]] = {}
    for path, entry in changes.items():
        name, inside, rest = path.partition(b"/")
        if inside:
            below.setdefault(name, {})[rest] = entry
        else:
            entries[name] = entry
    for name, some in below.items():
        folder = entries.get(name)
        entries[name] = TreeEntry(FOLDER, _with_entries(hub, folder.id if folder is not None else "", some))
    return write_tree(hub, entries)


def overlap(some: frozenset[bytes], others: frozenset[bytes]) -> bool:
    """Whether two sets of changed paths have anything in common; a file and a folder of one name have, too."""
    if not some.isdisjoint(others):
        return True
    return not _folders(some).isdisjoint(others) or not _folders(others).isdisjoint(some)


def _folders(paths: frozenset[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for path in paths:
        while (path := path.rpartition(b"/")[0]) and path not in found:
            found.add(path)
    return found
