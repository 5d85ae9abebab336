"""Makes a branch in the person's repository, when they ask for it. Never moves one that is there."""

from __future__ import annotations

from pathlib import Path

from legion.domain.errors import BadInput, StateConflict
from legion.git.core.command import git
from legion.git.core.errors import BranchGone


def make_branch(common_dir: Path, branch: str, start: str, *, source: Path | None = None) -> str:
    """A new branch at a branch or commit. `source` is a repository that has the commit, where theirs may lack it."""
    if git("check-ref-format", "--branch", branch, git_dir=common_dir, accept=(0, 1, 128)).code != 0:
        raise BadInput(f"{branch[:100]!r} is no name for a branch.")
    if source is not None:
        git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", source, start,
            git_dir=common_dir)  # fmt: skip
    places = (f"refs/heads/{start}", f"refs/remotes/{start}", start)
    found = (
        git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{place}^{{commit}}", git_dir=common_dir,
            accept=(0, 1, 128))
        for place in places
    )  # fmt: skip
    commit = next((answer.text.strip().split()[-1] for answer in found if answer.code == 0), None)
    if commit is None:
        raise BranchGone(start)
    # Only where there is none: the old value is "no commit".
    made = git("update-ref", "-m", "legion: session", f"refs/heads/{branch}", commit, "0" * len(commit),
               git_dir=common_dir, accept=(0, 1, 128))  # fmt: skip
    if made.code != 0:
        raise StateConflict(f"{branch} exists already; leave --base-branch out.")
    return commit
