"""Commits and objects that a person's clone may lack: those of submodules, partial clones and damaged ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from legion.domain.text import count
from legion.git.core.command import fields, git
from legion.git.core.errors import GitError, UnusableRepository
from legion.git.core.history import History
from legion.system.process import run

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


_PROMISOR = r"^remote\..*\.promisor$"
_PARTIAL = {"core.repositoryformatversion": "1", "extensions.partialClone": "person", "remote.person.promisor": "true"}


def complete(common_dir: Path, tip: str, known: str | None = None) -> None:
    """Make sure that a repository has all objects of a commit, and of those since the one that is `known`.

    A partial clone fetches them by the person's own git, with their login. Raises UnusableRepository.
    """
    lacking = missing(common_dir, tip, known)
    remote = promisor(common_dir) if lacking else None
    if remote is not None:
        _fetch(common_dir, remote, lacking)
        lacking = missing(common_dir, tip, known)
    if lacking:
        raise UnusableRepository(
            f"The repository lacks {count(len(lacking), 'object')} that commit {tip[:9]} needs, {lacking[0][:9]} "
            "for one: `git fsck` lists them; fetch or clone it again."
        )


def missing(git_dir: Path, tip: str, known: str | None = None) -> list[str]:
    """The ids of objects that are not there: of one commit, or of all since the known one."""
    since = ("--no-walk", tip) if known is None else (tip, f"^{known}")
    words = ("rev-list", "--objects", "--missing=print", *since)
    told = git(*words, git_dir=git_dir, accept=(0, 128))
    if told.code != 0:
        said = " ".join(told.complaint.split())
        raise UnusableRepository(f"The repository is damaged ({said[-200:]}): repair it or clone it again.")
    return [line.removeprefix("?") for line in told.text.splitlines() if line.startswith("?")]


def promisor(common_dir: Path) -> str | None:
    """The remote that has what a partial clone lacks; None for any other repository."""
    told = git("config", "-z", "--name-only", "--get-regexp", _PROMISOR, git_dir=common_dir, accept=(0, 1)).text
    key = told.split("\0")[0]
    return key.removeprefix("remote.").removesuffix(".promisor") or None


def allow_missing(hub: Path) -> None:
    """Let git take it for granted that old objects are missing; none is ever fetched."""
    for key, value in _PARTIAL.items():
        git("config", key, value, git_dir=hub)


def _fetch(common_dir: Path, remote: str, ids: list[str]) -> None:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name == "GIT_SSH_COMMAND"
    }
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none")
    argv = ("git", "-c", "fetch.negotiationAlgorithm=noop", *words, "--stdin", remote)
    answer = run(
        argv,
        cwd=common_dir,
        env={**env, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
        stdin="".join(f"{one}\n" for one in ids).encode(),
    )
    if answer.code != 0:
        said = " ".join(answer.complaint.split())[-200:]
        raise UnusableRepository(
            f"In this partial clone your git could not fetch {count(len(ids), 'object')} from {remote} ({said}): "
            "see that `git fetch` works there, then try again."
        )
