"""Keeps the tree as it is after a call, by git with an index and objects of its own that no agent can reach.

How git is run comes with the run's spec, as data; nothing here knows a hub. What cannot be kept is not kept: no run
ends or waits for it. States lie in rolls; the one before the last goes when a new one begins.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from legion.system import process
from legion.system.process import FinishedProcess, ProgramMissing

_PATIENCE = 3.0
"""Seconds for one state; a tree that takes longer is not kept this time. Whoever stops the run waits as long."""
_MOST_FAULTS = 5
"""After so many in a row nothing more is tried in this run."""
_WEIGH_EVERY = 10

_READS_ONLY = frozenset(
    {
        "Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "ToolSearch", "BashOutput",
        "TaskOutput", "ListMcpResources", "ReadMcpResource", "ExitPlanMode", "EnterPlanMode", "AskUserQuestion",
    }
)  # fmt: skip

_Mark = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class StateStore:
    """How and where the states of a run's tree are kept."""

    env: Mapping[str, str]
    """The whole environment of git, but for its index and its objects."""
    tree: str
    folder: str
    base: str
    """The commit that the tree stands on."""
    seed: str
    """An index of the tree as the run finds it: it spares reading every file."""
    most: int
    most_bytes: int

    @staticmethod
    def from_json(facts: Mapping[str, object]) -> StateStore:
        return StateStore(**facts)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class TreeState:
    tree: str
    roll: int
    ms: float


class StateRecorder:
    def __init__(self, camera: StateStore) -> None:
        self._camera = camera
        self._roll = -1
        self._shots = 0
        self._faults = 0
        self._deadline = 0.0
        self._kept: tuple[_Mark, str] | None = None
        """The index as the last shot left it, and the tree that it is."""

    def wants(self, tool: object) -> bool:
        """Whether a call of this tool may have changed the tree. Legion's own tools do not touch it."""
        name = str(tool)
        return self._faults < _MOST_FAULTS and name not in _READS_ONLY and not name.startswith("mcp__legion__")

    def take(self) -> TreeState | None:
        began = time.monotonic()
        self._deadline = began + _PATIENCE
        try:
            if self._roll < 0 or self._shots >= self._camera.most or self._is_heavy():
                self._begin_roll()
            # Ends with 1 where it could not read a file; the others are there all the same.
            added = self._git("add", "--all", "--ignore-errors", "--", ".")
            tree = None if added.timed_out or added.code not in (0, 1) else self._tree()
        except (OSError, ProgramMissing):
            tree = None
        if tree is None:
            self._faults += 1
            self._sweep()
            return None
        self._faults = 0
        self._shots += 1
        return TreeState(tree=tree, roll=self._roll, ms=round((time.monotonic() - began) * 1000, 1))

    def _tree(self) -> str | None:
        """Of the index. Most calls change nothing, and then git leaves the index as it is."""
        if self._kept is not None and self._kept[0] == self._mark():
            return self._kept[1]
        written = self._git("write-tree")
        if written.timed_out or written.code != 0:
            return None
        self._kept = (self._mark(), written.text.strip())
        return self._kept[1]

    def _mark(self) -> _Mark:
        """Git puts a new file in the place of an index that changed."""
        status = (self._place(self._roll) / "index").stat()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _sweep(self) -> None:
        """A git that was killed leaves its lock and half of an object behind, and nobody else works here."""
        place = self._place(self._roll)
        with contextlib.suppress(OSError):
            for left in (place / "index.lock", *place.glob("objects/**/tmp_*")):
                left.unlink(missing_ok=True)

    def _begin_roll(self) -> None:
        self._roll, self._shots, self._kept = self._roll + 1, 0, None
        shutil.rmtree(self._place(self._roll - 2), ignore_errors=True)
        place = self._place(self._roll)
        (place / "objects/pack").mkdir(parents=True)
        if Path(self._camera.seed).exists():
            # The time of an index decides which files git looks at twice, so the copy keeps it.
            shutil.copy2(self._camera.seed, place / "index")
        else:
            self._git("read-tree", self._camera.base)

    def _is_heavy(self) -> bool:
        """Half of the room is for the roll before."""
        if self._shots % _WEIGH_EVERY:
            return False
        folders = os.walk(self._place(self._roll))
        sizes = (Path(folder, name).lstat().st_blocks * 512 for folder, _, names in folders for name in names)
        return self._shots > 0 and sum(sizes) > self._camera.most_bytes // 2

    def _place(self, roll: int) -> Path:
        return Path(self._camera.folder, str(roll))

    def _git(self, *words: str) -> FinishedProcess:
        place = self._place(self._roll)
        env = {
            **self._camera.env,
            "GIT_INDEX_FILE": str(place / "index"),
            "GIT_OBJECT_DIRECTORY": str(place / "objects"),
        }
        left = max(0.0, self._deadline - time.monotonic())
        return process.run(("git", *words), cwd=Path(self._camera.tree), env=env, timeout=left)
