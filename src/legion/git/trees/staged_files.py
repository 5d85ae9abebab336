"""Stores the files of a live tree in a quarantine, each through the filter that counts for it.

A program may change the tree's rules while git reads them. So the filter of each file that differs is fixed before git
stores it, and what was stored is compared with the rules that were stored with it: nothing else is used.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import as_text, fields
from legion.git.core.errors import GitError
from legion.git.hub.attribute_files import (
    EMPTY_TREE,
    PLAIN_FILE,
    Difference,
    attribute_files,
    names_attributes,
    with_differences,
)
from legion.git.hub.filters import Filters, filters_with
from legion.git.hub.incoming import object_files
from legion.git.hub.repository import Hub
from legion.git.trees.live import BorrowingHistory, Call, LiveTree, Quarantine, quarantine
from legion.system.process import FinishedProcess

_TRIES = 4
"""Readings of a tree: with the rules of its commit, with those that it added, and where these change meanwhile."""
_Calls = Callable[[Sequence[str]], Sequence[Call]]
UNREAD = (
    Call(("ls-files", "-z", "--others", "--exclude-standard")),
    Call(("diff-files", "-z", "--name-only", "--ignore-submodules")),
)
"""Files that the index lacks, and those that differ from it as far as their times tell. No filter runs."""


@dataclass(frozen=True)
class Staged:
    """What a reading found: the answers of its calls, the files that are left out, the tree, how it differs from the
    base."""

    answers: Sequence[FinishedProcess]
    large: Sequence[str]
    tree: str
    differences: Sequence[Difference]


def stage(
    place: Quarantine,
    tree: LiveTree,
    calls: _Calls,
    *,
    base: str,
    result: Callable[[Sequence[FinishedProcess]], str],
    timeout: float = 600.0,
    durable: bool = True,
) -> Staged:
    """Read a tree by the calls that are made for the files which are left out, where the index is as it is then.

    `result` names the tree that the calls wrote, or that of `base` where they wrote none; its rules count where those
    in force before say nothing. Where filters are in force, the first call reads a tree into the index. Raises GitError
    where the rules change all the time.
    """
    for _ in range(_TRIES):
        if place.filters is not None:
            answers, _ = place.read(tree, lambda large: (calls(large)[0], *UNREAD), timeout=timeout, durable=False)
            place.use(place.filters.on(path for listed in answers[1:] for path in fields(listed.stdout)))
        left_out = () if place.filters is None else place.filters.unwritable
        every = functools.partial(_calls, calls, left_out)
        answers, large = place.read(tree, every, timeout=timeout, durable=durable)
        now = result(answers)
        before = place.hub.tree_of(base)
        changed = () if now == before else tuple(place.history.differences(before, now))
        if _is_settled(place, base, changed):
            return Staged(answers, large, now, changed)
        # Nothing of this reading stays but its rules: it may hold what a filter hides.
        rules = set() if place.filters is None else {id for files in place.filters.rules for id in files.values()}
        for file in object_files(place.objects):
            if f"{file.parent.name}{file.name}" not in rules:
                file.unlink()
        place.index.unlink(missing_ok=True)
    raise GitError(("git", "add"), "its rules for filters change faster than they can be read")


def _calls(calls: _Calls, left_out: Sequence[str], large: Sequence[str]) -> Sequence[Call]:
    return calls((*large, *left_out))


def _is_settled(place: Quarantine, base: str, changed: Sequence[Difference]) -> bool:
    """Whether each file was stored through the filter that counts for it. If not, the next reading knows that one."""
    hub = place.hub
    if place.filters is None and (hub.source is None or not any(names_attributes(path) for path, _, _ in changed)):
        return True
    files = with_differences(attribute_files(hub, base), changed)
    found = filters_with(place.filters, place.history, hub.source, files, stores=(place.objects, hub.objects))
    if found is None:
        return True
    paths = [path for path, _, new in changed if new is not None]
    found = found.on(paths)
    if not found.would_move(place.filters, paths):
        return True
    place.use(found)
    return False


def passes_a_filter_by(hub: Hub, store: Path, tree: str, *, base: str) -> bool:
    """Whether a tree, whose objects lie in a folder of ours and went through no filter, holds a changed file that goes
    through one: by the rules of its base, of the target, or of its own.
    """
    if hub.source is None:
        return False
    history = BorrowingHistory(hub, (store,))
    changed = tuple(history.differences(hub.tree_of(base), tree))
    files = with_differences(attribute_files(hub, base), changed)
    before = hub.filters(base, hub.target() or base)
    found = filters_with(before, history, hub.source, files, stores=(store, hub.objects))
    paths = [path for path, _, new in changed if new is not None]
    return found is not None and any(found.on(paths).chosen.values())


def tried(hub: Hub, filters: Filters, commit: str) -> dict[str, str]:
    """By filter that does not do its work on a file of the commit, there and back: what is wrong."""
    tree_id = hub.tree_of(commit)
    there = ((path, new) for path, _, new in hub.differences(EMPTY_TREE[len(tree_id)], tree_id) if new is not None)
    stored = {path: new.id for path, new in there if new.mode in PLAIN_FILE and b"\n" not in path}
    filters = filters.on(stored)
    first = {name: path for path, name in sorted(filters.chosen.items(), reverse=True) if name}
    faults = {}
    with quarantine(hub, filters) as place:
        (place.folder / "tree").mkdir()
        tree = LiveTree(hub=hub, path=place.folder / "tree", confine=filters.source.confine)
        for name, path in sorted((name, path) for name, path in first.items() if name not in filters.refused):
            as_path = f"--path={os.fsdecode(path)}"
            try:
                shown = place.run(tree, Call(("cat-file", "--filters", as_path, stored[path])), durable=False)[0].stdout
                again = place.run(tree, Call(("hash-object", as_path, "--stdin"), stdin=shown), durable=False)[0].text
                if again.strip() != stored[path]:
                    faults[name] = f"what it makes of {as_text(path)} is not what is stored of that file"
            except GitError as failed:
                faults[name] = f"it fails on {as_text(path)} ({' '.join(failed.complaint.split())[-200:]})"
    return faults
