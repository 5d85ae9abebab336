"""Saving what an agent left in its tree, without ever running git on the agent's own .git.

The tree is read in a sandbox (`live.py`), with an index of ours: no filter, hook or monitor of the agent has anywhere
to stand, and a link out of the tree leads nowhere. Does not know what a ticket is.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import as_text, fields
from legion.git.core.errors import GitError
from legion.git.core.history import GITLINK, TreeEntry
from legion.git.hub.attribute_files import Difference
from legion.git.hub.filters import failed_id
from legion.git.hub.objects import Signature, write_commit
from legion.git.trees.live import Call, LiveTree, Quarantine, quarantine, readable
from legion.git.trees.obstacles import ALL_BUT, pathspecs
from legion.git.trees.staged_files import UNREAD, Staged, stage
from legion.git.trees.unsaved import not_ignored
from legion.system import crash, trees
from legion.system.crash import Point
from legion.system.process import FinishedProcess


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
    tree: LiveTree, index_file: Path, *, parent: str, message: str, author: Signature, when: int, timeout: float = 600.0
) -> TreeSnapshot:
    """Store all files that are not ignored as a commit on `parent`. The same input gives the same commit.

    Submodules stay as the parent has them. `when` is in seconds since 1970. Raises TreeGone or TreeUnreadable.
    """
    with look(tree, index_file, parent=parent, timeout=timeout) as seen:
        seen.place.admit()
        seen.refuse_incomplete()
        large = not_ignored(tree, seen.large)
    crash.reach(Point.GIT_SNAPSHOT_BEFORE_COMMIT)
    commit = parent
    if seen.changed:
        stamp = author.stamp(when)
        commit = write_commit(
            tree.hub, tree=seen.tree, parents=(parent,), author=stamp, committer=stamp, message=message
        )
    crash.reach(Point.GIT_SNAPSHOT_AFTER_COMMIT)
    return TreeSnapshot(
        commit=commit,
        tree=seen.tree,
        changed=seen.changed,
        nested=_shown(seen.nested),
        unreadable=_shown(set(seen.unreadable) - set(map(os.fsencode, large))),
        large=tuple(large),
        submodules=_shown(seen.submodules),
    )


@dataclass(frozen=True, kw_only=True)
class TreeLook:
    """What a tree holds now. Its new objects are in quarantine, and are gone when the look is over."""

    place: Quarantine
    tree: str
    differences: Sequence[Difference]
    nested: Sequence[bytes]
    submodules: Sequence[bytes]
    unreadable: Sequence[bytes]
    large: Sequence[str]

    @property
    def changed(self) -> bool:
        """Whether it differs from the parent."""
        return bool(self.differences)

    def refuse_incomplete(self) -> None:
        """Once the objects were admitted: raises GitError where one is missing."""
        for path, _, new in self.differences:
            if new is not None and new.mode != GITLINK and not self.place.hub.has(new.id):
                raise GitError(("git", "add"), f"it did not store {as_text(path)}")


@contextlib.contextmanager
def look(
    tree: LiveTree, index_file: Path, *, parent: str, timeout: float = 600.0, durable: bool = True
) -> Iterator[TreeLook]:
    """Read all files that are not ignored. `index_file` is what is known of the files, and knows more afterwards."""
    tree.refuse_gone()
    index_file.parent.mkdir(parents=True, exist_ok=True)
    with quarantine(tree.hub, tree.hub.filters(parent)) as place:
        with contextlib.suppress(FileNotFoundError):
            place.put_index(index_file)
        with readable(tree):
            seen = _read(place, tree, parent, timeout, durable=durable)
        yield seen
        place.take_index(index_file)


def _read(place: Quarantine, tree: LiveTree, parent: str, timeout: float, *, durable: bool) -> TreeLook:
    before = tree.hub.tree_of(parent)
    staged = _add(place, tree, parent, timeout, durable=durable)
    now, differences = staged.tree, staged.differences
    nested, submodules, repairs = _gitlinks(differences)
    unfiltered: list[bytes] = []
    if place.filters is not None:
        stored = _stored_forms(place, tree, differences)
        unfiltered, undone = _unfiltered(place, differences, {path for path, _ in stored})
        repairs += b"".join(_line(path, old) for path, old in stored) + undone
    if repairs:
        fix = Call(("update-index", "-z", "--replace", "--index-info"), stdin=repairs)
        now = place.run(tree, fix, Call(("write-tree",)), durable=durable)[-1].text.strip()
    if os.path.lexists(tree.path / ".gitmodules"):
        submodules += _edited_submodules(place, tree)
    unreadable = unfiltered
    if staged.answers[1].code != 0:
        others, changed = place.run(tree, *UNREAD)
        for path in fields(others.stdout):
            (nested if path.endswith(b"/") else unreadable).append(path.rstrip(b"/"))
        unreadable += fields(changed.stdout)
    return TreeLook(
        place=place,
        tree=now,
        differences=list(place.history.differences(before, now)),
        nested=nested,
        submodules=submodules,
        unreadable=unreadable,
        large=staged.large,
    )


def _stored_forms(
    place: Quarantine, tree: LiveTree, differences: Sequence[Difference]
) -> list[tuple[bytes, TreeEntry]]:
    """Files that are as git stores them, with their entries in the parent: an agent's own git, which has no filters,
    wrote them, and the filter was applied a second time.
    """
    changed = [(path, old) for path, old, new in differences if old is not None and new is not None]
    plain = [(path, old) for path, old in changed if b"\n" not in path and _is_file(tree, path)]
    asked = b"".join(path + b"\n" for path, _ in plain)
    try:
        ids = place.run(tree, Call(("hash-object", "--no-filters", "--stdin-paths"), stdin=asked))[0].text.split()
    except GitError:
        # A program is still writing: the next reading is as good.
        return []
    return [(path, old) for (path, old), id in zip(plain, ids, strict=False) if id == old.id]


def _unfiltered(
    place: Quarantine, differences: Sequence[Difference], but: Container[bytes]
) -> tuple[list[bytes], bytes]:
    """Files whose filter failed, and the index entries that take them back."""
    failed = [(path, old, new) for path, old, new in differences if new is not None and path not in but]
    failed = [(path, old, new) for path, old, new in failed if new.id == failed_id(len(new.id))]
    return [path for path, _, _ in failed], b"".join(
        _line(path, old or TreeEntry(b"0", "0" * len(new.id))) for path, old, new in failed
    )


def _line(path: bytes, entry: TreeEntry) -> bytes:
    return b"%s %s\t%s\0" % (entry.mode, entry.id.encode(), path)


def _is_file(tree: LiveTree, path: bytes) -> bool:
    facts = trees.facts(tree.path, os.fsdecode(path))
    return facts is not None and stat.S_ISREG(facts.st_mode)


_ALL = 3
"""Calls of a reading in which something was added."""


def _add(place: Quarantine, tree: LiveTree, parent: str, timeout: float, *, durable: bool) -> Staged:
    """Everything but files that are too large, and those."""
    before = tree.hub.tree_of(parent)

    def calls(large: Sequence[str]) -> tuple[Call, ...]:
        # Starting from the parent each time makes the result depend on nothing but the parent and the files.
        known = ("-i", "-m") if place.index.exists() else ()
        return (
            Call(("read-tree", *known, parent)),
            Call(ALL_BUT, stdin=pathspecs(large), accept=(0, 1)),
            Call(("write-tree",), if_printed=True),
        )

    def result(answers: Sequence[FinishedProcess]) -> str:
        return answers[-1].text.strip() if len(answers) == _ALL else before

    return stage(place, tree, calls, base=parent, result=result, timeout=timeout, durable=durable)


def _edited_submodules(place: Quarantine, tree: LiveTree) -> list[bytes]:
    """Submodules whose folder holds other files than their commit, and no repository: git reports nothing of it."""
    entries = fields(place.run(tree, Call(("ls-files", "--stage", "-z")))[0].stdout)
    links = [entry.split(b"\t", 1) for entry in entries if entry.startswith(GITLINK)]
    named = [(facts.split(b" ")[1].decode(), path) for facts, path in links]
    inside = {path: trees.names(tree.path, os.fsdecode(path)) for _, path in named}
    return [path for id, path in named if inside[path] and ".git" not in inside[path] and _is_edited(tree, id, path)]


def _is_edited(tree: LiveTree, commit: str, path: bytes) -> bool:
    hub = tree.hub
    if hub.resolve(commit) is None:
        return True
    calls = (Call(("read-tree", commit)), Call(ALL_BUT, stdin=pathspecs(()), accept=(0, 1)), Call(("write-tree",)))
    with quarantine(hub, hub.filters(commit)) as apart:
        try:
            now = apart.run(tree, *calls, durable=False, below=os.fsdecode(path))[-1]
        except GitError:
            return True
        return now.text.strip() != hub.tree_of(commit)


def _gitlinks(differences: Sequence[Difference]) -> tuple[list[bytes], list[bytes], bytes]:
    """Nested repositories in the new tree, changed submodules, and the index entries that take back both."""
    nested, submodules, repairs = [], [], b""
    for path, old, new in differences:
        if old is not None and old.mode == GITLINK:
            submodules.append(path)
            repairs += _line(path, old)
        elif new is not None and new.mode == GITLINK:
            nested.append(path)
            repairs += _line(path, TreeEntry(b"0", "0" * len(new.id)))
    return nested, submodules, repairs


def _shown(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(sorted(as_text(path) for path in set(paths)))
