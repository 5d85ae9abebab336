"""The tags of the person's repository."""

from __future__ import annotations

from pathlib import Path

from legion.git.core.command import git

_MOST = 10_000


def tags(common_dir: Path) -> tuple[str, ...]:
    """By name, without `refs/tags/`. Raises GitError where the repository cannot be read."""
    found = git("for-each-ref", "--format=%(refname:strip=2)", "refs/tags", git_dir=common_dir)
    return tuple(sorted(found.stdout.decode("utf-8", "replace").splitlines()))[:_MOST]
