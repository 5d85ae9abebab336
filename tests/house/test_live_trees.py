"""Git reads the worktree of a run in one way only: in a sandbox, by `git/trees/live.py`."""

from __future__ import annotations

import ast
import subprocess

import pytest

from legion.git.trees.tree import Tree
from tests.git.conftest import grounds, person
from tests.git.making import Grounds
from tests.support.codebase import SOURCE, files_with, place, tree
from tests.support.watched_git import GitOutsideSandbox

__all__ = ["grounds", "person"]

OTHER_TREES = {
    "git/core/command.py": "it passes the folder on",
    "git/trees/live.py": "the one that reads live trees, in the sandbox",
    "git/trees/tree.py": "trees that Legion makes itself, for the pool and for checks",
    "git/merge/candidates.py": "a folder of ours that holds nothing but attributes",
    "git/merge/prediction.py": "the same folder",
    "git/person/adopted.py": "a checkout of the person's, where no agent of Legion is",
    "git/person/inspect.py": "the person's repository",
    "git/person/branches.py": "a folder that was just made",
}
STILL_TREES = {"git/trees/pool.py", "git/trees/check_trees.py", "git/trees/ignore_rules.py"}
"""Each of them makes the folder itself. What is handed a folder, such as setup, cannot know who wrote there."""


def test_no_other_module_runs_git_on_a_worktree():
    names = "GIT_WORK_TREE", "work_tree"
    found = [
        place(path, node.lineno)
        for path in files_with("|".join(names), "src")
        if str(path.relative_to(SOURCE)) not in OTHER_TREES
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.Constant) and node.value == names[0])
        or (isinstance(node, ast.Call) and ast.unparse(node.func) == "git" and "work_tree" in words(node))
    ]
    assert not found, f"an agent may be writing there; take a LiveTree: {found}"


STARTS = (
    r"\b(?:import|from) (?:subprocess|pty|multiprocessing)\b|create_subprocess"
    r"|\bos\.(?:system|popen|fork|exec\w+|spawn\w+|posix_spawn\w*)\("
)


def test_the_daemon_starts_programs_in_one_way_only():
    """By `system/process.py` and what stands on it: a git of one's own would read a live tree outside the sandbox."""
    rooms = ("api", "config", "daemon", "domain", "forge", "git", "jobs", "machine", "service", "store", "wire")
    found = {
        str(path.relative_to(SOURCE))
        for path in files_with(STARTS, "src")
        if path.relative_to(SOURCE).parts[0] in rooms
    }
    # The reader of the hub's objects, and a worker that starts anew as itself.
    assert found == {"git/core/object_reader.py", "machine/worker.py"}


def test_trees_without_a_sandbox_are_those_in_which_no_program_is_at_work():
    found = [
        str(path.relative_to(SOURCE))
        for path in files_with(r"from legion\.git\.trees(?:\.tree import [^\n]*\bTree\b| import [^\n]*\btree\b)", "src")
    ]
    assert set(found) <= STILL_TREES, "take a LiveTree: an agent may have been at work in the tree"


def test_any_test_fails_in_which_git_starts_on_a_worktree_outside_the_sandbox(grounds: Grounds):
    """By the class of the fault, not by the module that has it: `watched_git` sees every start of a program."""
    tree = Tree(grounds.hub, grounds.agent().path, grounds.worktrees.index("1"))
    with pytest.raises(GitOutsideSandbox):
        tree.git("status")
    with pytest.raises(GitOutsideSandbox):
        subprocess.run(("git", "status"), env={"GIT_WORK_TREE": str(tree.path)}, check=True)


WRITES = {"write_bytes", "write_text", "copyfile", "copy", "copy2", "copytree", "move", "touch", "hardlink_to"}
WRITTEN = {
    ("git/trees/live.py", "self.pipes.open"): "the notes of removed pipes are next to the tree, in no quarantine",
    ("git/hub/lfs.py", "half.open"): "a new file in the stores of LFS, which no filter can write",
    ("git/trees/tree.py", "written.write_text"): "next to the index of a tree of ours",
}


def test_only_safe_files_writes_where_a_filter_could_have_left_a_link():
    """In the modules that have a quarantine at hand: a path in it may be a link to any file of the person's."""
    modules = [
        path
        for path in files_with(r"quarantine|Quarantine|safe_files", "src")
        if path.is_relative_to(SOURCE / "git") and path.name != "private_repository.py"
    ]
    found = [
        (str(path.relative_to(SOURCE)), ast.unparse(node.func))
        for path in modules
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and writes(node)
    ]
    assert SOURCE / "git/trees/live.py" in modules
    assert [one for one in found if one not in WRITTEN] == [], "take `safe_files.write`"


def writes(call: ast.Call) -> bool:
    name = ast.unparse(call.func).rpartition(".")[2]
    modes = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    return name in WRITES or (name == "open" and any(set(mode) & set("wax+") for mode in modes))


def test_every_exception_above_still_exists():
    assert [name for name in (*OTHER_TREES, *STILL_TREES) if not (SOURCE / name).exists()] == []


def words(call: ast.Call) -> set[str | None]:
    return {keyword.arg for keyword in call.keywords}
