"""Submodules: finds their commits in the person's clone and brings them into the hub, without any network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import fields, git
from legion.git.core.errors import GitError
from legion.git.core.history import History

_FILE = ".gitmodules"
_GITLINK = b"160000"


@dataclass(frozen=True, kw_only=True)
class Submodule:
    """One of a commit: the folder, the commit in it, and the person's repository that should have that commit."""

    path: str
    commit: str
    repository: Path


def submodules(history: History, tree: str, modules: Path) -> tuple[Submodule, ...]:
    """Those that .gitmodules names and the tree has. `modules` is the folder of the person's repositories of them."""
    return tuple(_listed(history, tree, modules)) if history.read_file(tree, _FILE) is not None else ()


def bring(hub: History, one: Submodule) -> bool:
    """Whether the hub has the commit of the submodule, fetched from the person's clone if need be."""
    ref = f"refs/legion/submodules/{one.commit}"
    if hub.resolve(ref) is not None:
        return True
    if not one.repository.is_dir():
        return False
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options")
    try:
        git(*words, one.repository, f"+{one.commit}:{ref}", git_dir=hub.path)
    except GitError:
        # Not fetched there yet, or a repository that cannot be read: the folder stays empty, as in a fresh clone.
        return False
    return True


def _listed(history: History, tree: str, modules: Path) -> Iterator[Submodule]:
    blob = f"{tree}:{_FILE}"
    words = ("config", "-z", "--blob", blob, "--get-regexp", r"^submodule\..*\.path$")
    told = git(*words, git_dir=history.path, accept=(0, 1, 128)).stdout
    top = modules.resolve()
    for key, _, path in (entry.partition(b"\n") for entry in fields(told)):
        name = os.fsdecode(key).removeprefix("submodule.").removesuffix(".path")
        repository = (modules / name).resolve()
        commit = _gitlink(history, tree, path)
        # The name is the repository's word, and must not lead to another repository of the person.
        if commit is not None and repository != top and repository.is_relative_to(top):
            yield Submodule(path=os.fsdecode(path), commit=commit, repository=repository)


def _gitlink(history: History, tree: str, path: bytes) -> str | None:
    """The commit at a path of the tree; None where there is no submodule."""
    at = history.tree_of(tree)
    *folders, last = path.strip(b"/").split(b"/")
    for folder in folders:
        entry = history.entries(at).get(folder)
        if entry is None or entry.mode != b"40000":
            return None
        at = entry.id
    entry = history.entries(at).get(last)
    return entry.id if entry is not None and entry.mode == _GITLINK else None
