"""Refuses, in every process of the tests, what no code of Legion may do: start git on the worktree of a run.

Python reports each start of a program before it happens. In a sandbox the program that starts is bubblewrap; where
there is none, it is a shell.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_STARTS = {"os.posix_spawn": (1, 2), "subprocess.Popen": (1, 3)}
"""By the name of the report: where it has the command line, and where the environment."""


class GitOutsideSandbox(AssertionError):
    """A git that reads files which an agent has made must be started by `git/trees/live.py`."""


def watch() -> None:
    """From now on, in this process and in those that are forked from it."""
    sys.addaudithook(_refuse)


def _refuse(report: str, facts: tuple[Any, ...], starts: Mapping[str, tuple[int, int]] = _STARTS) -> None:
    # At the end of the interpreter, when this module is empty, reports still arrive.
    if report not in starts:
        return
    argv, env = (facts[place] for place in starts[report])
    if not isinstance(env, Mapping) or not argv or Path(os.fsdecode(argv[0])).name != "git":
        return
    tree = env.get("GIT_WORK_TREE")
    if tree and _is_worktree(Path(tree)):
        raise GitOutsideSandbox(f"{list(argv)} runs on {tree}")


def _is_worktree(tree: Path) -> bool:
    """One that was published under its name; those that Legion makes and keeps ready have a folder beside them."""
    return (tree.parent / ".pool").is_dir() and (tree.parent / ".making").is_dir()
