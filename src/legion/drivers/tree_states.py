"""Records the tree between calls as git trees, with an index and objects that no agent can reach.

The run's spec says how git is called, in a sandbox of its own; nothing here knows a hub. A state that cannot be
recorded is skipped: no run fails or waits for it. States are stored in rolls; starting a new roll deletes the last but
one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legion.system import process
from legion.system.process import ProgramMissing

_TIMEOUT = 3.0
"""Seconds for one state; a slower one is skipped. A request to stop the run waits as long."""
_MOST_FAULTS = 5
"""Failures in a row after which this run records nothing more."""
_WEIGH_EVERY = 10

_Mark = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class StateStore:
    """How and where the states of a run's tree are recorded."""

    prefix: tuple[str, ...]
    """What a command line begins with that runs git on the tree; the last line of its output is git's exit code."""
    env: Mapping[str, str]
    """The environment of git, without its index and its objects."""
    folder: str
    base: str
    """The commit that the tree is based on."""
    seed: str
    """An index of the tree at the start of the run: it saves reading every file."""
    most: int
    most_bytes: int

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> StateStore:
        return StateStore(**facts)


@dataclass(frozen=True, kw_only=True)
class TreeState:
    tree: str
    roll: int
    ms: float


class StateRecorder:
    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._roll = -1
        self._count = 0
        self._faults = 0
        self._deadline = 0.0
        self._kept: tuple[_Mark, str] | None = None
        """The index after the last state, and its tree."""

    @property
    def gave_up(self) -> bool:
        return self._faults >= _MOST_FAULTS

    def record(self) -> TreeState | None:
        """The current state; None where it could not be recorded."""
        began = time.monotonic()
        self._deadline = began + _TIMEOUT
        try:
            if self._roll < 0 or self._count >= self._store.most or self._is_full():
                self._start_roll()
            # Exits with 1 where it could not read a file; the other files are added all the same.
            code, _ = self._git("add", "--all", "--ignore-errors", "--", ".")
            tree = self._tree() if code in ("0", "1") else None
        except (OSError, ProgramMissing):
            tree = None
        if tree is None:
            self._faults += 1
            self._remove_leftovers()
            return None
        self._faults = 0
        self._count += 1
        return TreeState(tree=tree, roll=self._roll, ms=round((time.monotonic() - began) * 1000, 1))

    def _tree(self) -> str | None:
        """The tree of the index. Most calls change nothing, and then git does not rewrite the index."""
        if self._kept is not None and self._kept[0] == self._mark():
            return self._kept[1]
        code, tree = self._git("write-tree")
        if code != "0":
            return None
        self._kept = (self._mark(), tree)
        return tree

    def _mark(self) -> _Mark:
        """Identifies the index: git replaces the file when the index changes."""
        status = (self._folder(self._roll) / "index").stat()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _remove_leftovers(self) -> None:
        """A git that was killed leaves its lock and partial objects behind. No other process works here."""
        folder = self._folder(self._roll)
        with contextlib.suppress(OSError):
            for left in (folder / "index.lock", *folder.glob("objects/**/tmp_*")):
                left.unlink(missing_ok=True)

    def _start_roll(self) -> None:
        self._roll, self._count, self._kept = self._roll + 1, 0, None
        shutil.rmtree(self._folder(self._roll - 2), ignore_errors=True)
        folder = self._folder(self._roll)
        (folder / "objects/pack").mkdir(parents=True)
        if Path(self._store.seed).exists():
            # Git compares the times of files with that of the index, so the copy keeps it.
            shutil.copy2(self._store.seed, folder / "index")
        else:
            self._git("read-tree", self._store.base)

    def _is_full(self) -> bool:
        """Half of the space is for the previous roll."""
        if self._count % _WEIGH_EVERY:
            return False
        folders = os.walk(self._folder(self._roll))
        sizes = (Path(folder, name).lstat().st_blocks * 512 for folder, _, names in folders for name in names)
        return self._count > 0 and sum(sizes) > self._store.most_bytes // 2

    def _folder(self, roll: int) -> Path:
        return Path(self._store.folder, str(roll))

    def _git(self, *args: str) -> tuple[str, str]:
        """The exit code, and the output before it. No code where git did not run to its end."""
        folder = self._folder(self._roll)
        env = {
            **self._store.env,
            "GIT_INDEX_FILE": str(folder / "index"),
            "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
        }
        left = max(0.0, self._deadline - time.monotonic())
        ended = process.run((*self._store.prefix, "git", *args), env=env, timeout=left)
        output, _, code = ended.text.strip().rpartition("\n")
        return ("" if ended.timed_out else code), output
