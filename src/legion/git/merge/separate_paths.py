"""Merges two commits that changed different paths and removed none, without a process.

Most changes of a batch are so. Without a removed path there is no rename, so git would do nothing but join the two
lists of paths either. Everything else is left to git, and so are histories that are not plain.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from pathlib import Path

from legion.git.core.history import FOLDER, GITLINK, TreeEntry
from legion.git.hub.objects import read_commit, write_tree
from legion.git.hub.repository import Hub

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
