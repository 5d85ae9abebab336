"""Branches and repositories made for the person: of a commit, of a session, or for agents alone."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

from legion.domain.errors import BadInput, StateConflict
from legion.git.core.command import as_text, git
from legion.git.core.errors import BranchGone, CollectRefused
from legion.git.hub.lfs import hand_over_lfs
from legion.git.hub.repository import Hub
from legion.git.person.inspect import look
from legion.system import files
from legion.system.process import run

_MOST = 99
_NOTHING = ""
"""The old value of a reference that must not exist yet, whatever the repository hashes with."""
_LONGEST_SLUG = 40


def branch_for(ticket: int, title: str) -> str:
    """A name that tells a person which ticket it is."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_LONGEST_SLUG].strip("-")
    return f"legion/{ticket}-{slug}" if slug else f"legion/{ticket}"


def offer(checkout_root: Path, hub: Hub, commit: str, wanted: str) -> str:
    """The branch that now holds the commit: the wanted name, or with a number where that one holds something else."""
    facts = look(checkout_root)
    if git("check-ref-format", "--branch", wanted, git_dir=facts.common_dir, accept=(0, 1, 128)).code != 0:
        raise CollectRefused(f"{wanted!r} is no name for a branch; choose another with --branch.")
    git(
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", hub.path, commit,
        git_dir=facts.common_dir,
    )  # fmt: skip
    base = git("merge-base", facts.head or commit, commit, git_dir=facts.common_dir, accept=(0, 1)).text.strip()
    if base:
        changed = hub.changed_files(base, commit)
        hand_over_lfs(hub, facts.common_dir, (file.content.split(" ")[-1] for file in changed))
    for number in range(1, _MOST + 1):
        name = wanted if number == 1 else f"{wanted}-{number}"
        if _tip(facts.common_dir, name) == commit or _made(facts.common_dir, name, commit):
            return name
    raise CollectRefused(f"{_MOST} branches are called like {wanted}; delete some, or choose another with --branch.")


def push(checkout_root: Path, branch: str, remote: str) -> None:
    """Push a branch to a branch of the same name. By an ordinary git of the person: their login, their hooks."""
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name == "GIT_SSH_COMMAND"
    }
    argv = ("git", "push", "--quiet", "--end-of-options", remote, f"refs/heads/{branch}:refs/heads/{branch}")
    answer = run(argv, cwd=checkout_root, env={**env, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"})
    if answer.code != 0:
        why = " ".join(answer.complaint.split())[-400:]
        raise CollectRefused(f"git could not push {branch} to {remote}: {why}")


def remotes(checkout_root: Path) -> tuple[str, ...]:
    return tuple(as_text(git("remote", git_dir=look(checkout_root).common_dir).stdout).split())


def _tip(common_dir: Path, name: str) -> str:
    answer = git("rev-parse", "--verify", "--quiet", f"refs/heads/{name}", git_dir=common_dir, accept=(0, 1))
    return as_text(answer.stdout).strip()


def _made(common_dir: Path, name: str, commit: str) -> bool:
    """Only where no such branch exists, also if one is made at the same moment."""
    words = ("update-ref", "-m", "legion: checkout", f"refs/heads/{name}", commit, _NOTHING)
    return git(*words, git_dir=common_dir, accept=(0, 1, 128)).code == 0


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


_README = "The folder of agents that were hired outside of a project. It belongs to Legion; you may use it, too.\n"
_WHO = {"user.name": "Legion", "user.email": "legion@legion.invalid"}


def make_scratch(folder: Path) -> Path:
    """The repository at `folder`, made if it is not there. Published by one rename, so it is always complete."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    half.mkdir()
    git("init", "--quiet", "--initial-branch=main", "--template=", git_dir=None, cwd=half)
    files.write_atomic(half / "README.md", _README)
    git_dir = half / ".git"
    git("add", "--all", git_dir=git_dir, work_tree=half)
    git("commit", "--quiet", "--no-gpg-sign", "-m", "Start", git_dir=git_dir, work_tree=half, settings=_WHO)
    try:
        half.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    return folder
