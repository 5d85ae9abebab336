"""A folder of files seen through the hub and an index of ours: how we read and write trees that hold no trust."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import fields, git
from legion.git.hub.repository import Hub
from legion.system.process import FinishedProcess


@dataclass(frozen=True)
class Tree:
    """`index` describes the files at `path`. The folder's own .git takes no part in anything done here."""

    hub: Hub
    path: Path
    index: Path

    def git(
        self,
        *args: str | os.PathLike[str],
        stdin: bytes = b"",
        timeout: float = 600.0,
        accept: tuple[int, ...] = (0,),
    ) -> FinishedProcess:
        return git(
            *args,
            git_dir=self.hub.path,
            work_tree=self.path,
            index=self.index,
            stdin=stdin,
            timeout=timeout,
            accept=accept,
        )

    def show(self, commit_or_tree: str) -> None:
        """Make tracked files exactly these, replacing what is in their way. Other files stay.

        A file whose times alone are others is read again first, and not written: it would be newer than what a build
        made of it.
        """
        if self.index.exists():
            self.git("update-index", "-q", "--refresh", accept=(0, 1))
        self.git("read-tree", "--reset", "-u", commit_or_tree)

    def describe(self, commit: str) -> None:
        """Make the index say `commit` and leave the files alone; what is known of unchanged files stays known."""
        self.git("read-tree", *(("-i", "-m") if self.index.exists() else ()), commit)


def untracked(hub: Hub, folder: Path, commit: str) -> tuple[str, ...]:
    """The paths in the folder besides the files of `commit`, ignored or not; a whole new folder counts as one."""
    # In the hub, where `tidy` sweeps away what a killed process leaves.
    place = hub.path / "incoming"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="index-", dir=place) as scratch:
        tree = Tree(hub, folder, Path(scratch) / "index")
        tree.describe(commit)
        found = tree.git("ls-files", "-z", "--others", "--directory").stdout
    return tuple(os.fsdecode(path.rstrip(b"/")) for path in fields(found))


def exactly(path: str) -> str:
    """An ignore pattern that matches this path from the top and nothing else."""
    return "/" + re.sub(r"([\\*?\[\]! #])", r"\\\1", path.strip("/"))
