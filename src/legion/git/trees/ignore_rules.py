"""Evaluates the ignore rules of a commit, whatever an agent did to its worktree since."""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath

from legion.git.hub.repository import Hub
from legion.git.trees.tree import Tree


def is_left_out(hub: Hub, commit: str, path: str) -> bool:
    """The commit's own ignore files cover the path, and nothing of that name is tracked in it."""
    # In the hub, where `tidy` sweeps away what a killed process leaves.
    place = hub.path / "incoming"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ignore-", dir=place) as scratch:
        tree = Tree(hub, Path(scratch) / "tree", Path(scratch) / "index")
        for folder in PurePosixPath(path).parents:
            (tree.path / folder).mkdir(parents=True, exist_ok=True)
            rules = hub.read_file(commit, str(folder / ".gitignore"))
            if rules is not None:
                (tree.path / folder / ".gitignore").write_bytes(rules)
        tree.describe(commit)
        # It takes no literal paths; the dot in front keeps a colon from meaning anything.
        asked = tree.git("--no-literal-pathspecs", "check-ignore", "--quiet", "--", f"./{path}", accept=(0, 1))
        return asked.code == 0
