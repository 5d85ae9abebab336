"""Worktrees, where runs work: one folder per name next to the person's repository, each a private repository of its
own.

A worktree is published by one rename, so a folder under its name is always whole. Removing means renaming into the
trash. Does not know tickets or agents.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from legion.git.hub.objects import Signature
from legion.git.hub.repository import Hub
from legion.git.trees.pool import Pool
from legion.git.trees.private_repository import remove_stale_locks
from legion.system import crash, files, trees
from legion.system.crash import Point

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
_AGENT = Signature(name="Legion agent", email="agent@legion.invalid")


@dataclass(frozen=True, kw_only=True)
class WorktreeFacts:
    """A worktree, or a tree that waits in the pool (its name then is the pool's)."""

    name: str
    path: Path
    bytes: int
    in_pool: bool


class Worktrees:
    """`root`, and `trash` on the same file system, hold trees; `side` holds our indexes and records of them."""

    def __init__(self, hub: Hub, root: Path, trash: Path, side: Path, *, author: Signature = _AGENT) -> None:
        self._hub = hub
        self._root = root.absolute()
        self._trash = trash.absolute()
        self._side = side.absolute() / "worktrees"
        self._publishing = threading.Lock()
        self._trash_sizes: dict[str, int] = {}
        self._trash_emptied_at = -math.inf
        self._side.mkdir(parents=True, exist_ok=True)
        self._pool = Pool(hub, self._root, self._trash, side.absolute(), author)

    def path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for a worktree; use letters, digits, '-', '_' and '.'.")
        return self._root / name

    def index(self, name: str) -> Path:
        """Our own index of a worktree, for snapshots."""
        return self._side / f"{name}.index"

    def pipes(self, name: str) -> Path:
        """Where the named pipes of a worktree are noted that had to be removed."""
        return self._side / f"{name}.pipes"

    def acquire(self, name: str, commit: str, branch: str) -> Path:
        """The worktree of this name as it is, or a new one at `commit` on `branch`. No program is at work in it."""
        place = self.path(name)
        if place.exists() and self.index(name).exists():
            remove_stale_locks(place / ".git")
            return place
        tree = self._pool.take(commit)
        self._pool.plant(tree, commit=commit, branch=branch)
        with self._publishing:
            if place.exists() and self.index(name).exists():
                self._pool.throw_away(tree)
                return place
            if place.exists():
                # Left by a Legion whose data are gone, so it belongs to another ticket.
                files.move_to_trash(place, self._trash)
            tree.index.replace(self.index(name))
            crash.reach(Point.GIT_TREE_BEFORE_PUBLISH)
            tree.path.rename(place)
        crash.reach(Point.GIT_TREE_AFTER_PUBLISH)
        return place

    def replant(self, name: str, commit: str, tree: str, branch: str, *, attempt: int) -> Path:
        """Put a new worktree at `commit` in the place of the old one, its files equal to `tree`.

        The old one goes whole to the trash. Repeating the same attempt gives back what it made.
        """
        place = self.path(name)
        if place.exists() and self._attempt(name) == (attempt, place.stat().st_ino):
            return place
        fresh = self._pool.take(commit)
        if tree != self._hub.tree_of(commit):
            fresh.show(tree)
            fresh.describe(commit)
        self._pool.plant(fresh, commit=commit, branch=branch)
        with self._publishing:
            # The folder's own number ties the record to this very tree, whichever side of a crash it is on.
            record = {"attempt": attempt, "inode": fresh.path.stat().st_ino}
            files.write_atomic(self._side / f"{name}.json", json.dumps(record))
            if place.exists():
                files.move_to_trash(place, self._trash)
            crash.reach(Point.GIT_REPLANT_AFTER_TRASH)
            self.pipes(name).unlink(missing_ok=True)
            fresh.index.replace(self.index(name))
            fresh.path.rename(place)
        return place

    def discard(self, name: str) -> None:
        """Rename a worktree into the trash; there is nothing to do where there is none."""
        place = self.path(name)
        with self._publishing:
            if place.exists():
                files.move_to_trash(place, self._trash)
            crash.reach(Point.GIT_DISCARD_AFTER_TRASH)
            for record in (self.index(name), self.pipes(name), self._side / f"{name}.json"):
                record.unlink(missing_ok=True)

    def fill(
        self, count: int, commit: str, *, disk_cap_bytes: int, prepare: Callable[[Path], None] | None = None
    ) -> int:
        """Make warm trees until `count` wait or the disk cap is reached. Returns how many were made."""
        return self._pool.fill(count, commit, disk_cap_bytes=disk_cap_bytes, prepare=prepare)

    def freshen(self, commit: str) -> int:
        """Move warm trees to a new target. Returns how many moved."""
        return self._pool.freshen(commit)

    def waiting(self) -> int:
        """How many warm trees there are."""
        return len(self._pool.waiting())

    def drop_waiting(self) -> None:
        """Throw away all warm trees."""
        self._pool.drop_waiting()

    def sweep(self) -> tuple[Path, ...]:
        """Throw away what a crash left half-made. Only at start, before any other call."""
        for half in self._side.glob(".*"):
            half.unlink()
        return self._pool.sweep()

    def list(self) -> tuple[WorktreeFacts, ...]:
        named = [
            WorktreeFacts(name=name, path=self._root / name, bytes=trees.size(self._root / name), in_pool=False)
            for name in self.names()
        ]
        pooled = [
            WorktreeFacts(name=tree.token, path=self._pool.path_of(tree), bytes=tree.bytes, in_pool=True)
            for tree in self._pool.waiting()
        ]
        return (*named, *pooled)

    def orphans(self, known_names: Collection[str]) -> tuple[str, ...]:
        """Worktrees without a known owner."""
        return tuple(name for name in self.names() if name not in known_names)

    def empty_trash(self, *, older_than: float, keep_bytes: int, now: float, every: float = 0.0) -> tuple[Path, ...]:
        """At most once in `every` seconds: a full trash holds ten thousand trees, and each time all are listed."""
        if every and time.monotonic() - self._trash_emptied_at < every:
            return ()
        self._trash_emptied_at = time.monotonic()
        sizes = self._trash_sizes
        return tuple(files.empty_trash(self._trash, older_than=older_than, keep_bytes=keep_bytes, now=now, sizes=sizes))

    def names(self) -> tuple[str, ...]:
        places = self._root.iterdir() if self._root.is_dir() else ()
        return tuple(sorted(place.name for place in places if _NAME.fullmatch(place.name)))

    def _attempt(self, name: str) -> tuple[int, int] | None:
        try:
            record = json.loads((self._side / f"{name}.json").read_bytes())
        except FileNotFoundError:
            return None
        return record["attempt"], record["inode"]
