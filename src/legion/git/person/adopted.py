"""Brings work of the person's checkouts and branches into the hub, uncommitted files included. Writes nothing there."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import fields, git
from legion.git.core.errors import BranchGone, NotARepository
from legion.git.hub.objects import Signature, write_commit
from legion.git.hub.repository import Hub
from legion.git.person.inspect import find

_AUTHOR = Signature(name="Legion", email="legion@legion.invalid")


@dataclass(frozen=True, kw_only=True)
class AdoptedWork:
    commit: str
    """Holds everything; kept in the hub."""
    tree: str
    base: str
    """Where the work left the target; its own tip, if the two share no commit."""
    uncommitted: bool


def adopt_checkout(hub: Hub, common_dir: Path, folder: Path, *, target: str) -> AdoptedWork:
    """The files of a checkout as they are, or of its last commit where git filters are in force: none runs here.

    Raises NotARepository if it belongs to another repository.
    """
    git_dir, shared, bare, _ = find(folder)
    if bare or shared.resolve() != common_dir.resolve():
        raise NotARepository(f"{folder} is no checkout of this project's repository.")
    head = git("symbolic-ref", "--quiet", "HEAD", git_dir=git_dir, accept=(0, 1)).text.strip()
    if not head:
        raise NotARepository(f"HEAD is detached in {folder}: switch to a branch there first.")
    tip = hub.fetch_branch(common_dir, head.removeprefix("refs/heads/"))
    tree = _tree(hub, git_dir, folder, tip) if hub.filters(tip) is None else hub.tree_of(tip)
    return _adopted(hub, tip, tree, target)


def adopt_branch(hub: Hub, common_dir: Path, branch: str, *, target: str) -> AdoptedWork:
    """A branch of the person, or one of a remote. Raises BranchGone where there is none."""
    if not branch or branch.startswith("-"):
        raise BranchGone(branch)
    tip = hub.fetch_branch(common_dir, branch)
    return _adopted(hub, tip, hub.tree_of(tip), target)


def _adopted(hub: Hub, tip: str, tree: str, target: str) -> AdoptedWork:
    uncommitted = tree != hub.tree_of(tip)
    commit = tip
    if uncommitted:
        # The same files on the same tip give the same commit.
        stamp = _AUTHOR.stamp(0)
        message = "Uncommitted work that was adopted\n"
        commit = write_commit(hub, tree=tree, parents=(tip,), author=stamp, committer=stamp, message=message)
    hub.keep(f"adopted/{commit}", commit)
    return AdoptedWork(commit=commit, tree=tree, base=hub.merge_base(tip, target) or tip, uncommitted=uncommitted)


def _tree(hub: Hub, git_dir: Path, folder: Path, tip: str) -> str:
    """The tip with every file of the checkout as it is now: changed, new, deleted; ignored ones stay out."""
    listed = git(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", git_dir=git_dir, work_tree=folder, cwd=folder
    )
    here = [path for path in fields(listed.stdout) if _is_file(folder, path)]
    committed = [os.fsencode(path) for path in hub.files(tip)]
    # A folder in the place of a file is a submodule, which stays as the tip has it.
    known = [path for path in committed if not _is_folder(folder, path)]
    paths = b"".join(path + b"\0" for path in dict.fromkeys([*here, *known]))
    # In the hub, where `tidy` sweeps away what a killed process leaves.
    place = hub.path / "incoming"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="adopt-", dir=place) as scratch:
        index = Path(scratch) / "index"

        def ours(*args: str, stdin: bytes = b"") -> str:
            return git(*args, git_dir=hub.path, work_tree=folder, index=index, stdin=stdin).text.strip()

        ours("read-tree", tip)
        if paths:
            ours("add", "--all", "--force", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=paths)
        return ours("write-tree")


def _is_file(folder: Path, path: bytes) -> bool:
    return os.path.lexists(folder / os.fsdecode(path)) and not _is_folder(folder, path)


def _is_folder(folder: Path, path: bytes) -> bool:
    place = folder / os.fsdecode(path)
    return place.is_dir() and not place.is_symlink()
