"""Offers a commit to the person as a new branch of their repository, and pushes it. No branch of theirs ever moves."""

from __future__ import annotations

import os
import re
from pathlib import Path

from legion.git.core.command import as_text, git
from legion.git.core.errors import CollectRefused
from legion.git.hub.lfs import hand_over_lfs
from legion.git.hub.repository import Hub
from legion.git.person.inspect import look
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
