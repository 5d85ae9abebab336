"""Trees made ahead of time. A tree in the pool has its files and no .git; its index and record are in our folder.

The thread that renames a tree out of the pool owns it: that is the whole protocol between threads, and between a daemon
and what a killed one left behind. A tree outside the pool that has not been published is half-made and never used
again.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.errors import FolderGone, GitError
from legion.git.hub.objects import Signature
from legion.git.hub.repository import Hub
from legion.git.trees.private_repository import write_private
from legion.git.trees.tree import Tree
from legion.system import crash, files, trees
from legion.system.crash import Point


@dataclass(frozen=True, kw_only=True)
class PooledTree:
    """A tree in the pool: the commit it shows and the bytes it takes."""

    token: str
    commit: str
    bytes: int


class Pool:
    def __init__(self, hub: Hub, root: Path, trash: Path, side: Path, author: Signature) -> None:
        self._hub = hub
        self._root = root
        self._pool = root / ".pool"
        self._making = root / ".making"
        self._trash = trash
        self._side = side / "pool"
        self._author = author
        self._filling = threading.Lock()
        self._counting = threading.Lock()
        self._known: dict[str, PooledTree] | None = None
        """The waiting trees as they were seen last, so that many starts at once neither read nor race for them."""
        self._make_folders()

    def _make_folders(self) -> None:
        # All code of the project is in here, and the person's repository may be closed to others.
        files.private_folder(self._root)
        for folder in (self._pool, self._making, self._side):
            folder.mkdir(parents=True, exist_ok=True)

    def _restore_folders(self) -> None:
        """People delete folders that they think they do not need.

        Raises FolderGone where the hub is gone: then so may be the data folder, which must not appear again.
        """
        if not self._hub.path.is_dir():
            raise FolderGone(self._hub.path)
        self._make_folders()

    def take(self, commit: str) -> Tree:
        """A tree outside the pool that shows `commit`: a waiting one, moved if need be, or a new one."""
        while (waiting := self._next(commit)) is not None:
            tree = self._claim(waiting)
            if tree is None:
                continue
            crash.reach(Point.GIT_POOL_AFTER_CLAIM)
            try:
                if waiting.commit != commit:
                    tree.show(commit)
            except GitError:
                self.throw_away(tree)
                continue
            return tree
        self._restore_folders()
        return self._make(commit)

    def fill(self, count: int, commit: str, *, disk_cap_bytes: int, prepare: Callable[[Path], None] | None) -> int:
        """Make trees until `count` wait or the next one would pass the cap. Returns how many were made."""
        made = 0
        size: int | None = None
        with self._filling:
            self._restore_folders()
            self.waiting()
            while True:
                waiting = self._known_trees()
                each = max((tree.bytes for tree in waiting), default=0) or self._hub.bytes_on_disk(commit)
                if len(waiting) >= count or sum(tree.bytes for tree in waiting) + each > disk_cap_bytes:
                    return made
                tree = self._make(commit)
                if prepare is not None:
                    self._prepare(tree, commit, prepare)
                # Trees of one commit are equal, unless commands ran in them.
                size = trees.size(tree.path) if size is None or prepare is not None else size
                self._put(tree, commit, size)
                made += 1

    def freshen(self, commit: str) -> int:
        """Move waiting trees to `commit`, one at a time, so that the others can be taken meanwhile."""
        moved = 0
        with self._filling:
            for waiting in self.waiting():
                tree = self._claim(waiting) if waiting.commit != commit else None
                if tree is None:
                    continue
                try:
                    tree.show(commit)
                except GitError:
                    self.throw_away(tree)
                    continue
                self._put(tree, commit, waiting.bytes)
                moved += 1
        return moved

    def waiting(self) -> tuple[PooledTree, ...]:
        """The waiting trees as they are on disk."""
        with contextlib.suppress(FolderGone):
            self._restore_folders()
        found = []
        for entry in sorted(_entries(self._pool), key=lambda entry: entry.name):
            try:
                record = json.loads((self._side / f"{entry.name}.json").read_bytes())
            except FileNotFoundError:
                continue
            found.append(PooledTree(token=entry.name, commit=record["commit"], bytes=record["bytes"]))
        with self._counting:
            self._known = {tree.token: tree for tree in found}
        return tuple(found)

    def _known_trees(self) -> tuple[PooledTree, ...]:
        with self._counting:
            return tuple((self._known or {}).values())

    def _next(self, commit: str) -> PooledTree | None:
        """Choose a waiting tree, one that shows `commit` if there is any. No other thread is given the same."""
        if self._known is None:
            self.waiting()
        with self._counting:
            if not self._known:
                return None
            token = next((token for token, tree in self._known.items() if tree.commit == commit), None)
            return self._known.pop(token or next(iter(self._known)))

    def path_of(self, waiting: PooledTree) -> Path:
        return self._pool / waiting.token

    def plant(self, tree: Tree, *, commit: str, branch: str | None) -> None:
        """Give a tree a fresh .git, whole or not at all."""
        half = tree.path.with_name(f"{tree.path.name}.git")
        _settle(tree.index)
        write_private(half, hub=self._hub, commit=commit, branch=branch, index=tree.index, author=self._author)
        half.rename(tree.path / ".git")

    def throw_away(self, tree: Tree) -> None:
        files.move_to_trash(tree.path, self._trash)
        self._forget(tree.path.name)

    def drop_waiting(self) -> None:
        """Throw away every waiting tree. One that is made meanwhile stays."""
        for waiting in self.waiting():
            tree = self._claim(waiting)
            if tree is not None:
                self.throw_away(tree)

    def sweep(self) -> tuple[Path, ...]:
        """Throw away what a killed process left half-made. Only at start, before anyone takes a tree."""
        self._make_folders()
        half_made = [*self._making.iterdir()]
        half_made += [place for place in self._pool.iterdir() if not (self._side / f"{place.name}.json").exists()]
        thrown = tuple(files.move_to_trash(place, self._trash) for place in half_made)
        kept = {f"{place.name}.{kind}" for place in self._pool.iterdir() for kind in ("json", "index")}
        for record in self._side.iterdir():
            if record.name not in kept:
                record.unlink()
        return thrown

    def _claim(self, waiting: PooledTree) -> Tree | None:
        place = self._making / waiting.token
        with self._counting:
            if self._known is not None:
                self._known.pop(waiting.token, None)
        try:
            self.path_of(waiting).rename(place)
        except FileNotFoundError:
            return None
        (self._side / f"{waiting.token}.json").unlink(missing_ok=True)
        return Tree(self._hub, place, self._side / f"{waiting.token}.index")

    def _make(self, commit: str) -> Tree:
        token = uuid.uuid4().hex
        tree = Tree(self._hub, self._making / token, self._side / f"{token}.index")
        tree.path.mkdir()
        try:
            tree.show(commit)
        except GitError:
            self.throw_away(tree)
            raise
        return tree

    def _put(self, tree: Tree, commit: str, size: int) -> None:
        record = {"commit": commit, "bytes": size}
        files.write_atomic(self._side / f"{tree.path.name}.json", json.dumps(record))
        crash.reach(Point.GIT_POOL_BEFORE_PUBLISH)
        tree.path.rename(self._pool / tree.path.name)
        with self._counting:
            if self._known is not None:
                self._known[tree.path.name] = PooledTree(token=tree.path.name, commit=commit, bytes=size)

    def _prepare(self, tree: Tree, commit: str, prepare: Callable[[Path], None]) -> None:
        self.plant(tree, commit=commit, branch=None)
        try:
            prepare(tree.path)
            # Setup commands may have left anything in .git, so the tree gets a new one when it is taken.
            files.move_to_trash(tree.path / ".git", self._trash)
            tree.show(commit)
        except BaseException:
            self.throw_away(tree)
            raise

    def _forget(self, token: str) -> None:
        for suffix in ("json", "index"):
            (self._side / f"{token}.{suffix}").unlink(missing_ok=True)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """An empty list where the folder is gone."""
    try:
        return list(os.scandir(folder))
    except FileNotFoundError:
        return []


def _settle(index: Path) -> None:
    """Make the index younger than the files that it describes, where they were written before the present second.

    git compares the two times by the second. Files as young as their index count as perhaps changed: it reads them all
    again, and `git add` in a worktree, which cannot touch the hub, stores each of them once more. No program has had
    the tree since, so a later change gives a file a later time.
    """
    now = time.time()
    if int(index.stat().st_mtime) < int(now):
        os.utime(index, (now, now))
