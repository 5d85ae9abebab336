"""A tree with files added to those of a commit, made without a worktree."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from legion.git.core.command import git
from legion.git.hub.repository import Hub


def tree_with_files(hub: Hub, commit: str, files: Mapping[str, bytes]) -> str:
    """The tree of the commit with these files as they are given; a file of the same path is replaced."""
    # In the hub, where `tidy` sweeps away what a killed process leaves.
    place = hub.path / "incoming"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="files-", dir=place) as scratch:
        index = Path(scratch) / "index"

        def run(*args: str, stdin: bytes = b"") -> str:
            return git(*args, git_dir=hub.path, index=index, stdin=stdin).text.strip()

        run("read-tree", commit)
        for path, content in files.items():
            blob = run("hash-object", "-w", "--no-filters", "--stdin", stdin=content)
            run("update-index", "--add", "--replace", "--cacheinfo", f"100644,{blob},{path}")
        return run("write-tree")
