"""Fast-forwards the person's branch to landed code: the only place that writes into their repository.

What can be read is read the hardened way. The one command that moves their branch is an ordinary git of theirs, with
their settings, filters and hooks, and it can only fast-forward.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import as_text, git
from legion.git.core.errors import BranchGone, CollectRefused, GitError
from legion.git.hub.lfs import hand_over_lfs
from legion.git.hub.repository import Hub
from legion.git.person.inspect import RepositoryFacts, find, look
from legion.system import crash
from legion.system.crash import Point
from legion.system.process import FinishedProcess, run

_UNFINISHED = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
_HEAD_NAMES = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
_NAMED_AT_MOST = 5


@dataclass(frozen=True, kw_only=True)
class CollectedRange:
    """The branch moved from `old` to `new`, which changed `files` files. Equal ids: it was there already."""

    old: str
    new: str
    files: int


@dataclass(frozen=True, kw_only=True)
class _Checkout:
    path: Path
    git_dir: Path
    branch: str | None


def collect(checkout_root: Path, branch: str, hub: Hub, commit: str, *, dry_run: bool = False) -> CollectedRange:
    """Fast-forward the person's branch to `commit`, or raise CollectRefused and change nothing.

    A dry run refuses for the same reasons, and returns the range without moving the branch.
    """
    facts = look(checkout_root)
    try:
        old = hub.fetch_person(facts.common_dir, branch)
    except BranchGone as gone:
        raise CollectRefused(str(gone)) from None
    if hub.is_ancestor(commit, old):
        return CollectedRange(old=old, new=old, files=0)
    if not hub.is_ancestor(old, commit):
        raise CollectRefused(
            f"{branch} has commits that are not in the landed code yet; wait until they are taken in, then collect."
        )
    holder = _holder(facts, branch)
    if dry_run:
        return CollectedRange(old=old, new=commit, files=len(hub.changed_files(old, commit)))
    changed = hub.changed_files(old, commit)
    _fetch(facts.common_dir, hub, commit)
    hand_over_lfs(hub, facts.common_dir, (file.content.split(" ")[-1] for file in changed))
    crash.reach(Point.GIT_COLLECT_AFTER_FETCH)
    if holder is None:
        _swap(facts.common_dir, branch, old=old, new=commit)
    else:
        _fast_forward(holder, branch, commit)
    crash.reach(Point.GIT_COLLECT_AFTER_MOVE)
    return CollectedRange(old=old, new=commit, files=len(changed))


def _fetch(repository: Path, hub: Hub, commit: str) -> None:
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options")
    try:
        git(*words, hub.path, commit, git_dir=repository)
    except GitError as failed:
        why = " ".join(failed.complaint.split())
        raise CollectRefused(
            f"Landed commits could not be written into {repository} ({why}): make it writable, then collect again."
        ) from failed


def _holder(facts: RepositoryFacts, branch: str) -> Path | None:
    """The checkout that has the branch; refuses where one is in the middle of something with it."""
    holder = None
    for checkout in _checkouts(facts):
        if checkout.branch == branch:
            for sign, what in _UNFINISHED.items():
                if (checkout.git_dir / sign).exists():
                    raise CollectRefused(
                        f"A {what} is in progress in {checkout.path}; finish or abort it, then collect again."
                    )
            holder = checkout.path
        elif branch in _busy_branches(checkout.git_dir):
            raise CollectRefused(
                f"{branch} is being rebased or bisected in {checkout.path}; finish that, then collect again."
            )
    return holder


def _checkouts(facts: RepositoryFacts) -> list[_Checkout]:
    """Every checkout of the repository whose folder is there; the person's own first, wherever its .git is."""
    found = [] if facts.is_bare else [_Checkout(path=facts.root, git_dir=facts.git_dir, branch=facts.branch)]
    answer = git("worktree", "list", "--porcelain", "-z", git_dir=facts.common_dir)
    for entry in answer.stdout.split(b"\0\0"):
        said = dict(line.partition(b" ")[::2] for line in entry.split(b"\0") if line)
        path = Path(os.fsdecode(said.get(b"worktree", b"")))
        if b"worktree" not in said or b"bare" in said or not (path / ".git").exists():
            continue
        git_dir = find(path)[0]
        if all(git_dir != other.git_dir for other in found):
            branch = as_text(said[b"branch"]).removeprefix("refs/heads/") if b"branch" in said else None
            found.append(_Checkout(path=path, git_dir=git_dir, branch=branch))
    return found


def _busy_branches(git_dir: Path) -> set[str]:
    busy = set()
    for name in _HEAD_NAMES:
        file = git_dir / name
        if file.is_file():
            busy.add(as_text(file.read_bytes()).strip().removeprefix("refs/heads/"))
    return busy


def _fast_forward(checkout: Path, branch: str, commit: str) -> None:
    answer = _theirs("merge", "--ff-only", "--no-autostash", "--quiet", commit, cwd=checkout)
    if answer.code == 0:
        return
    _refuse_foreign_owner(checkout, answer)
    in_the_way = re.findall(r"^\t(.+)$", answer.complaint, re.MULTILINE)
    if in_the_way:
        named = ", ".join(in_the_way[:_NAMED_AT_MOST]) + (", ..." if len(in_the_way) > _NAMED_AT_MOST else "")
        raise CollectRefused(
            f"Local changes in {checkout} are in the way ({named}); commit or move them, then collect again."
        )
    raise CollectRefused(f"git would not fast-forward {branch} in {checkout}: {' '.join(answer.complaint.split())}")


def _swap(common_dir: Path, branch: str, *, old: str, new: str) -> None:
    answer = _theirs("update-ref", "-m", "legion: collect", f"refs/heads/{branch}", new, old, cwd=common_dir)
    if answer.code != 0:
        _refuse_foreign_owner(common_dir, answer)
        raise CollectRefused(f"{branch} could not be moved, perhaps since it moved just now; collect again.")


def _refuse_foreign_owner(place: Path, answer: FinishedProcess) -> None:
    if "dubious ownership" in answer.complaint:
        raise CollectRefused(
            f"{place} belongs to another user, so git refuses to write there: collect as that user, or run "
            f"`git config --global --add safe.directory {place}`, then collect again."
        )


def _theirs(*args: str, cwd: Path) -> FinishedProcess:
    """An ordinary git of the person: their whole environment but for variables that would point it elsewhere."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return run(("git", *args), cwd=cwd, env={**env, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"})
