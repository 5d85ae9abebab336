"""A folder of files seen through the hub and an index of ours: how we read and write trees that hold no trust."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from legion.domain.landing.filter_rules import filter_names
from legion.git.core.command import git
from legion.git.core.errors import FilterFailed, GitError
from legion.git.hub.attribute_files import EMPTY_TREE
from legion.git.hub.filters import Filters
from legion.git.hub.repository import Hub
from legion.git.trees.live import Call, LiveTree, quarantine
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
        filters = self.hub.filters(commit_or_tree)
        self._clear_other_form(filters, commit_or_tree)
        calls = [Call(("update-index", "-q", "--refresh"), accept=(0, 1))] if self.index.exists() else []
        calls.append(Call(("read-tree", "--reset", "-u", commit_or_tree)))
        if filters is None:
            for call in calls:
                self.git(*call.words, accept=call.accept)
        else:
            self._through(filters, *calls)

    def _through(self, filters: Filters, *calls: Call) -> None:
        """Run git with filters: in their sandbox, with a repository that is gone afterwards."""
        with quarantine(self.hub, filters) as place:
            if self.index.exists():
                # The time of an index decides which files git looks at twice, so the copy keeps it.
                shutil.copy2(self.index, place.index)
            tree = LiveTree(hub=self.hub, path=self.path, confine=filters.source.confine)
            try:
                place.run(tree, *calls, writes=True)
            except GitError as failed:
                raise FilterFailed(filter_names(filters.rules), failed) from failed
            place.admit()
            place.take_index(self.index)

    def _clear_other_form(self, filters: Filters | None, commit_or_tree: str) -> None:
        """Remove the tracked files if they were written through other filters: git would take them for unchanged."""
        written = self.index.with_name(f"{self.index.name}.filters")
        before = written.read_text() if written.exists() else ""
        now = "" if filters is None else filters.mark
        if before == now:
            return
        if self.index.exists():
            self.git("read-tree", "--reset", "-u", EMPTY_TREE[len(self.hub.tree_of(commit_or_tree))])
        written.write_text(now)

    def describe(self, commit: str) -> None:
        """Make the index say `commit` and leave the files alone; what is known of unchanged files stays known."""
        self.git("read-tree", *(("-i", "-m") if self.index.exists() else ()), commit)
