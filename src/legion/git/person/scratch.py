"""Makes a repository of Legion's own, for agents that are hired where there is no project."""

from __future__ import annotations

import uuid
from pathlib import Path

from legion.git.core.command import git
from legion.system import files

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
