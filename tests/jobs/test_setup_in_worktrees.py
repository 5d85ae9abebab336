"""[setup] in the worktree of an agent: nothing that an agent left there stops it, and its outputs are no change."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from legion.git.trees.snapshots import look
from legion.jobs.workspace import kept_outputs, sandbox, save, setup
from tests.jobs.test_check_setup import SETUP, Ground, Make, make
from tests.support.attacks import Attacker, Door, attack

__all__ = ["make"]

LARGE = 1 << 42
"""Bytes of a file that takes no room on the disk."""


class Worktree:
    """An agent's, in which setup ran on the target."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.path = ground.project.worktrees.acquire("1", ground.project.target, "legion/1")
        self.setup(landed=ground.project.target)

    def setup(self, *, landed: str = "") -> None:
        project = self.ground.project
        setup.ensure(self.ground.board.context, project, self.path, landed=landed)

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)


def sparse(place: Path) -> None:
    place.unlink(missing_ok=True)
    with place.open("wb") as file:
        file.truncate(LARGE)


@attack(Attacker.AGENT, Door.TREES)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [".gitignore", "src/.gitattributes", "nested/.git/HEAD", "large", "deps.txt"])
def test_what_an_agent_left_does_not_stop_the_next_setup(make: Make, name: str):
    tree = Worktree(make())
    tree.write("deps.txt", "2\n")
    place = tree.path / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if name in ("large", "deps.txt"):
        sparse(place)
    else:
        os.mkfifo(place)
    tree.setup()
    assert (tree.path / "env/runs").read_text() == "x\nx\n"


def change(tree: Worktree) -> set[str]:
    """What is saved of the tree, besides the files of the target."""
    project = tree.ground.project
    live = sandbox.live_tree(tree.ground.board.context, project, tree.path)
    with look(live, project.worktrees.index("1"), parent=project.target) as seen:
        return {path.decode() for path, _, _ in seen.differences}


MAKES_MORE = SETUP + "mkdir -p made own/cache; echo x > made/x; echo y > own/cache/y; echo z >> value.txt\n"


def test_what_setup_makes_in_a_later_attempt_is_no_change(make: Make):
    """The agent's own change of setup makes it; it must not be kept out of the changes of others."""
    tree = Worktree(make())
    tree.write("own/work.txt", "mine\n")
    tree.write("deps.txt", "2\n")
    tree.write("setup.sh", MAKES_MORE)
    tree.setup()
    assert (tree.path / "made/x").exists()
    context, project = tree.ground.board.context, tree.ground.project
    edited = [edit.path for edit in kept_outputs.edited(project, tree.path)]
    assert edited == ["value.txt"]
    assert change(tree) - set(edited) == {"own/work.txt", "deps.txt", "setup.sh"}
    assert b"made" not in (project.hub.path / "info/exclude").read_bytes()
    tree.write("made/x", "of the agent\n")
    assert save._edited(project, sandbox.live_tree(context, project, tree.path)) == ("made",)
    tree.write("deps.txt", "3\n")
    tree.setup()
    assert change(tree) - set(edited) == {"own/work.txt", "deps.txt", "setup.sh"}, "nor in the attempt after that"


@attack(Attacker.AGENT, Door.CHECKS)
def test_a_tree_with_other_files_than_the_target_is_none_of_a_landed_commit(make: Make):
    """As after a kill: the tree was planted with work, and the ticket does not say so any more."""
    tree = Worktree(make())
    project = tree.ground.project
    tree.write("deps.txt", "2\n")
    tree.write("setup.sh", MAKES_MORE + 'touch "$XDG_CACHE_HOME/stain"\n')
    tree.setup(landed=project.target)
    assert b"made" not in (project.hub.path / "info/exclude").read_bytes()
    assert not (project.cache / "stain").exists()


def test_a_pipe_that_git_would_wait_for_is_reported_though_another_reader_removed_it(make: Make):
    tree = Worktree(make())
    os.mkfifo(tree.path / "src/.gitignore")
    assert change(tree) == set()
    assert not (tree.path / "src/.gitignore").exists()
    context, project = tree.ground.board.context, tree.ground.project
    live = sandbox.live_tree(context, project, tree.path)
    with look(live, project.worktrees.index("1"), parent=project.target):
        assert live.removed_pipes() == ["src/.gitignore"]
    project.worktrees.discard("1")
    assert live.removed_pipes() == []


ONCE = '[setup]\nrun = "sh setup.sh"\nkey = ["deps.txt"]\n[checks.test]\nrun = "true"\n'
MAKES = "mkdir -p env; cat /proc/sys/kernel/random/uuid > env/which; {more}\n"


def begin_together(ground: Ground, count: int) -> list[str]:
    """What setup made in each of these worktrees, whose tickets begin at the same time."""
    project, context = ground.project, ground.board.context
    trees = [project.worktrees.acquire(str(n), project.target, f"legion/{n}") for n in range(1, count + 1)]
    gate = threading.Barrier(count)

    def begin(tree: Path) -> str:
        gate.wait()
        setup.ensure(context, project, tree, landed=project.target, base=project.target)
        return (tree / "env/which").read_text()

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, trees))


def test_of_setups_that_begin_together_one_runs(make: Make):
    ground = make(ONCE, {"setup.sh": MAKES.format(more=""), "deps.txt": "1\n"})
    assert len(set(begin_together(ground, 3))) == 1


def test_setups_that_begin_together_run_in_each_tree_where_what_they_make_belongs_to_it(make: Make):
    ground = make(ONCE, {"setup.sh": MAKES.format(more="pwd > env/place"), "deps.txt": "1\n"})
    assert len(set(begin_together(ground, 2))) == 2


def test_a_setup_that_fails_leaves_its_turn_to_the_next(make: Make):
    ground = make(ONCE, {"setup.sh": "exit 1\n", "deps.txt": "1\n"})
    with pytest.raises(setup.SetupFailed):
        begin_together(ground, 2)
    assert not setup._MAKING
