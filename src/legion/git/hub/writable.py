"""A bare repository of ours: read through a git that stays alive, written to despite locks of a killed git."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from legion.git.core.errors import GitError
from legion.git.core.history import FOLDER, History
from legion.git.core.object_reader import reader
from legion.system import files
from legion.system.process import FinishedProcess

_FIRST_PARENT = re.compile(rb"tree [0-9a-f]+\nparent ([0-9a-f]+)\n")
_PARENT = re.compile(rb"^parent ([0-9a-f]+)$", re.MULTILINE)
_HELD_LOCK = re.compile(r"Unable to create '(.+?\.lock)': File exists")
# No living git holds a ref lock this long, since no hook runs while it does.
_STALE_SECONDS = 2.0


_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./%^{}~-]+")
_PLAIN_FILE = (b"100644", b"100755")
_DESCENDANTS: dict[tuple[Path, str], str] = {}
"""By repository and commit: the last commit that was found to descend from it."""
_MOST_KNOWN = 500
_NEAR = 40
"""Commits that are walked in search of an ancestor before git is asked."""


class WritableRepository(History):
    def _identify(self, name: str) -> str | None:
        if not _PLAIN_NAME.fullmatch(name):
            return super()._identify(name)
        found = reader(self.path).identify(name.encode())
        return found.decode() if found is not None else None

    def content(self, object: str) -> bytes:
        found = reader(self.path).read(object.encode()) if _PLAIN_NAME.fullmatch(object) else None
        if found is None:
            raise GitError(("git", "cat-file"), f"there is no object {object}")
        return found

    def has(self, object: str) -> bool:
        return reader(self.path).identify(object.encode()) is not None

    def size_of(self, object: str) -> int:
        """The bytes of an object's content; 0 where there is no such object."""
        return reader(self.path).size(object.encode()) or 0 if _PLAIN_NAME.fullmatch(object) else 0

    def read_file(self, commit: str, path: str) -> bytes | None:
        """The content of a regular file in a commit; None for anything else."""
        folder = self.tree_of(commit)
        parts = [part for part in os.fsencode(path).split(b"/") if part not in (b"", b".")]
        for part in parts[:-1]:
            entry = self.entries(folder).get(part)
            if entry is None or entry.mode != FOLDER:
                return None
            folder = entry.id
        entry = self.entries(folder).get(parts[-1]) if parts else None
        return self.content(entry.id) if entry is not None and entry.mode in _PLAIN_FILE else None

    def is_ancestor(self, ancestor: str, commit: str) -> bool:
        known = (ancestor, _DESCENDANTS.get((self.path, ancestor)))
        if self._descends(commit, known) or super().is_ancestor(ancestor, commit):
            if len(_DESCENDANTS) >= _MOST_KNOWN:
                _DESCENDANTS.clear()
            _DESCENDANTS[self.path, ancestor] = commit
            return True
        return False

    def _descends(self, commit: str, known: tuple[str | None, ...]) -> bool:
        """Whether one of the known commits is among the nearest first parents of `commit`, or is it."""
        at: str | None = self.resolve(commit)
        for _ in range(_NEAR):
            if at is None or at in known:
                return at is not None
            parent = _FIRST_PARENT.match(self.content(at))
            at = parent[1].decode() if parent is not None and not self.is_boundary(at) else None
        return False

    def is_boundary(self, commit: str) -> bool:
        """Whether a shallow history ends with this commit: it names parents, and they are not here."""
        try:
            return commit in (self.path / "shallow").read_text()
        except FileNotFoundError:
            return False

    def straight_line(self, base: str, head: str) -> tuple[tuple[str, str], ...] | None:
        """Parent and commit of each step from `base` to `head`, the oldest first, read without a process.

        None where they are many, or one of them is a merge: git has to be asked then. Both are complete ids.
        """
        steps: list[tuple[str, str]] = []
        at = head
        while at != base:
            parents = _PARENT.findall(self.content(at).partition(b"\n\n")[0])
            if len(parents) != 1 or len(steps) >= _NEAR:
                return None
            steps.append((parents[0].decode(), at))
            at = steps[-1][0]
        return tuple(reversed(steps))

    def _writing(self, *args: str | os.PathLike[str], stdin: bytes = b"") -> FinishedProcess:
        """Run git; where a killed git left a lock behind, remove it and run again."""
        try:
            return self._git(*args, stdin=stdin)
        except GitError as error:
            held = _HELD_LOCK.search(error.complaint)
            if held is None or not self._break_lock(Path(held[1])):
                raise
        return self._git(*args, stdin=stdin)

    def _break_lock(self, lock: Path) -> bool:
        # The flock keeps a second breaker from removing the fresh lock of the process that came after the first.
        with files.waiting_lock(self.path / "lock-breaker"):
            try:
                age = time.time() - lock.stat().st_mtime
            except FileNotFoundError:
                return True
            if age < _STALE_SECONDS or self.path not in lock.parents:
                return False
            lock.unlink()
            return True
