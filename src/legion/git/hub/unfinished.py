"""Recognises a merge, rebase or the like that an agent started in its repository and did not complete.

Reads names of files only: no git runs on the agent's repository.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from legion.system import trees


class GitOperation(Enum):
    """What was started, and how git completes it or takes it back."""

    MERGE = "merge"
    REBASE = "rebase"
    CHERRY_PICK = "cherry-pick"
    REVERT = "revert"
    BISECT = "bisect"

    @property
    def remedy(self) -> str:
        if self is GitOperation.BISECT:
            return "`git bisect reset` ends it"
        return f"`git {self.value} --continue` completes it, `git {self.value} --abort` takes it back"


_SIGNS = {
    "MERGE_HEAD": GitOperation.MERGE,
    "rebase-merge": GitOperation.REBASE,
    "rebase-apply": GitOperation.REBASE,
    "CHERRY_PICK_HEAD": GitOperation.CHERRY_PICK,
    "REVERT_HEAD": GitOperation.REVERT,
    "BISECT_LOG": GitOperation.BISECT,
}


def unfinished(work_tree: Path) -> GitOperation | None:
    """The operation that is in progress in the repository of this worktree."""
    there = trees.names(work_tree, ".git")
    return next((operation for sign, operation in _SIGNS.items() if sign in there), None)
