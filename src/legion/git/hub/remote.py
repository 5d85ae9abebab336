"""Fetches from and pushes to a remote of the project, with settings that name the protocol and hold the token.

A branch is only ever replaced from a commit that the caller names, so no push overwrites what it has not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from urllib.parse import quote

from legion.git.core.command import git
from legion.git.core.errors import GitError, GitProblem, RemoteUnreachable
from legion.git.hub.repository import Hub
from legion.system import crash
from legion.system.crash import Point

_PATIENCE = 300.0
_REFUSED = ("stale info", "[rejected]", "non-fast-forward", "fetch first", "already exists", "cannot lock ref")


class PushResult(Enum):
    PUSHED = "pushed"
    MOVED = "moved"
    """The branch is not where the caller expected it; nothing was changed."""


def tips(url: str, settings: Mapping[str, str], pattern: str) -> dict[str, str]:
    """Branches of the remote that match, and their commits."""
    found = _asked("ls-remote", "--heads", "--end-of-options", url, f"refs/heads/{pattern}", settings=settings)
    pairs = (line.split("\t", 1) for line in found.splitlines())
    return {name.removeprefix("refs/heads/"): commit for commit, name in pairs}


def default_branch(url: str, settings: Mapping[str, str]) -> str:
    found = _asked("ls-remote", "--symref", "--end-of-options", url, "HEAD", settings=settings)
    heads = [line.split()[1] for line in found.splitlines() if line.startswith("ref: ")]
    return heads[0].removeprefix("refs/heads/") if heads else "main"


def ref_of(branch: str) -> str:
    """Where the hub has a branch of the remote."""
    return f"refs/legion/remote/{quote(branch, safe='')}"


def fetch(hub: Hub, url: str, settings: Mapping[str, str], branch: str, tip: str) -> None:
    """Bring a branch of the remote here, unless the hub has that tip already."""
    if hub.resolve(ref_of(branch)) == tip:
        return
    flags = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-show-forced-updates")
    spec = f"+refs/heads/{branch}:{ref_of(branch)}"
    _run(hub, "fetch", *flags, "--end-of-options", url, spec, settings=settings)


def push(
    hub: Hub, url: str, settings: Mapping[str, str], branch: str, commit: str, *, expected: str | None
) -> PushResult:
    """Set a branch to a commit if it is at `expected` now; None: if it does not exist.

    A branch that is at the commit already counts as pushed.
    """
    return _update(hub, url, settings, branch, f"{commit}:refs/heads/{branch}", expected, commit)


def fast_forward(hub: Hub, url: str, settings: Mapping[str, str], branch: str, commit: str) -> PushResult:
    """Move a branch forward to a commit. The remote itself refuses anything else."""
    try:
        _push(hub, "--end-of-options", url, f"{commit}:refs/heads/{branch}", settings=settings)
    except GitError as refused:
        if any(sign in refused.complaint for sign in _REFUSED):
            return PushResult.MOVED
        raise _translated(refused) from None
    return PushResult.PUSHED


def delete(hub: Hub, url: str, settings: Mapping[str, str], branch: str, *, expected: str) -> PushResult:
    """Remove a branch that is at `expected`. One that is gone counts as removed."""
    if branch not in tips(url, settings, branch):
        return PushResult.PUSHED
    return _update(hub, url, settings, branch, f":refs/heads/{branch}", expected, None)


def _update(
    hub: Hub, url: str, settings: Mapping[str, str], branch: str, spec: str, expected: str | None, commit: str | None
) -> PushResult:
    lease = f"--force-with-lease=refs/heads/{branch}:{expected or ''}"
    try:
        _push(hub, lease, "--end-of-options", url, spec, settings=settings)
    except GitError as refused:
        if not any(sign in refused.complaint for sign in _REFUSED):
            raise _translated(refused) from None
        return PushResult.PUSHED if tips(url, settings, branch).get(branch) == commit else PushResult.MOVED
    return PushResult.PUSHED


def _push(hub: Hub, *args: str, settings: Mapping[str, str]) -> None:
    """Raises GitError where the remote refuses."""
    crash.reach(Point.GIT_REMOTE_BEFORE_PUSH)
    git("push", "--quiet", "--no-verify", *args, git_dir=hub.path, settings=settings, timeout=_PATIENCE)
    crash.reach(Point.GIT_REMOTE_AFTER_PUSH)


def _run(hub: Hub, *args: str, settings: Mapping[str, str]) -> None:
    try:
        git(*args, git_dir=hub.path, settings=settings, timeout=_PATIENCE)
    except GitError as trouble:
        if args[0] == "fetch":
            raise _translated(trouble) from None
        raise


def _asked(*args: str, settings: Mapping[str, str]) -> str:
    try:
        return git(*args, git_dir=None, settings=settings, timeout=_PATIENCE).text
    except GitError as trouble:
        raise _translated(trouble) from None


def _translated(trouble: GitError) -> GitProblem:
    """Without the command: a part of it may be private."""
    said = [line.removeprefix("fatal: ") for line in trouble.complaint.splitlines() if line.startswith("fatal: ")]
    return RemoteUnreachable(" ".join((said or [trouble.complaint])[0].split())[:300])
