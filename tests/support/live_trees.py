"""Worktrees as jobs hand them to readers: confined to themselves, where bubblewrap is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from legion.git.hub.repository import Hub
from legion.git.trees.live import LiveTree
from legion.runner.sandbox import Sandbox, SandboxMissing, wrap


def live(hub: Hub, tree: Path) -> LiveTree:
    return LiveTree(hub=hub, path=tree, confine=confine)


def confine(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], readable: Sequence[Path], writable: Sequence[Path]
) -> tuple[Sequence[str], Mapping[str, str]]:
    # A tree that Legion made itself for one try stands in a folder of its own, which goes with it.
    shown = [one for one in (*readable, *writable) if one.parent.name != "incoming"]
    around = [one for one in shown if one != cwd and cwd.is_relative_to(one)]
    assert not around, "git is shown the tree, and nothing that is around it"
    box = Sandbox(home=Path.home(), readable=tuple(readable), writable=tuple(writable), small=True)
    try:
        wrapped = wrap(argv, box, cwd=cwd, env=env)
    except SandboxMissing:
        return argv, env
    return wrapped.argv, wrapped.env
