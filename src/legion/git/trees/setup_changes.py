"""Separates what [setup] did to a tree from what its agent did: only what came after setup is the agent's change."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import fields, git
from legion.git.hub.filters import Filters
from legion.git.hub.objects import tree_entries
from legion.git.hub.repository import Hub
from legion.git.trees.live import Call, LiveTree, Quarantine, quarantine, readable
from legion.git.trees.obstacles import ALL_BUT, CHANGES_BUT, pathspecs
from legion.git.trees.staged_files import stage
from legion.git.trees.tree import scratch_index
from legion.system.process import FinishedProcess

Entry = tuple[str, str]
"""Mode and id of a file."""


@dataclass(frozen=True, kw_only=True)
class SetupEdit:
    """A file that setup changed. `after` is None where setup deleted it."""

    path: str
    before: Entry
    after: Entry | None


@dataclass(frozen=True, kw_only=True)
class FoundFiles:
    """What a tree held before setup."""

    others: tuple[str, ...]
    """The paths besides the files of the project, a whole folder as one."""
    state: str = ""
    """The files of the project, as a tree; empty where that is not known."""


def before(
    tree: LiveTree, commit: str, *, base: str = "", known: Path | None = None, index: Path | None = None
) -> FoundFiles:
    """What the tree holds besides the files of `commit`. The filters of `base`, from which its work started, go before
    those of the commit.

    In a worktree, of which `known` is what is known, all that is not ignored counts as a file of the project, and
    `index` describes it afterwards. Raises TreeUnreadable.
    """
    with quarantine(tree.hub, _filters(tree, base, commit)) as place, readable(tree):
        if known is None or index is None:
            return FoundFiles(others=_paths(place.read(tree, lambda _: (_show(commit), _OTHERS))[0][-1]))
        place.put_index(known)
        found = stage(
            place,
            tree,
            lambda large: (
                _show(commit, *_known(place)),
                Call(ALL_BUT, stdin=pathspecs(large), accept=(0, 1)),
                _WRITE,
                _OTHERS,
            ),
            base=commit,
            result=lambda answers: answers[-2].text.strip(),
        )
        place.admit()
        place.take_index(index)
        return FoundFiles(others=_paths(found.answers[-1]), state=found.tree)


def after(
    tree: LiveTree, commit: str, state: str, index: Path, *, base: str = ""
) -> tuple[tuple[str, ...], tuple[SetupEdit, ...]]:
    """What the tree holds now besides the files that `before` found, and which of those were changed since."""
    with quarantine(tree.hub, _filters(tree, base, commit)) as place, readable(tree):
        if not state:
            return _paths(place.read(tree, lambda _: (_show(commit), _OTHERS))[0][-1]), ()
        if index.exists():
            place.put_index(index)
        found = stage(
            place,
            tree,
            lambda large: (
                _show(state, *_known(place)),
                _OTHERS,
                Call(CHANGES_BUT, stdin=pathspecs(large), accept=(0, 1)),
                _WRITE,
            ),
            base=state,
            result=lambda answers: answers[-1].text.strip(),
        )
        place.admit()
    edits = (
        SetupEdit(
            path=os.fsdecode(path),
            before=(old.mode.decode(), old.id),
            after=None if new is None else (new.mode.decode(), new.id),
        )
        for path, old, new in tree.hub.differences(state, found.tree)
        if old is not None
    )
    return _paths(found.answers[1]), tuple(edits)


def _filters(tree: LiveTree, base: str, commit: str) -> Filters | None:
    return tree.hub.filters(*(one for one in (base, commit) if one))


def _known(place: Quarantine) -> tuple[str, ...]:
    """How git keeps what the index knows of the files."""
    return ("-i", "-m") if place.index.exists() else ()


_OTHERS = Call(("ls-files", "-z", "--others", "--directory"))
_WRITE = Call(("write-tree",))


def _show(commit_or_tree: str, *known: str) -> Call:
    return Call(("read-tree", *known, commit_or_tree))


def _paths(listed: FinishedProcess) -> tuple[str, ...]:
    return tuple(os.fsdecode(path.rstrip(b"/")) for path in fields(listed.stdout))


def without(hub: Hub, tree: str, *, base: str, edited: Sequence[SetupEdit], made: Sequence[str]) -> str:
    """The tree without what only setup did.

    A file that setup edited and that is still as setup left it becomes what it was before. What setup made is removed,
    also where the agent has committed it; files of `base` in its place stay.
    """
    if not edited and not made:
        return tree
    with scratch_index(hub) as index:

        def run(*words: str, stdin: bytes = b"") -> bytes:
            return git(*words, git_dir=hub.path, index=index, stdin=stdin).stdout

        run("read-tree", tree)
        if made:
            there = staged(run("ls-files", "--stage", "-z", "--", *made))
            gone = b"".join(_line(path, ("0", "0" * len(id))) for path, (_, id) in there.items())
            run("update-index", "-z", "--index-info", stdin=gone)
            run("update-index", "-z", "--index-info", stdin=run("ls-tree", "-r", "-z", base, "--", *made))
        take_back(run, base, edited)
        return run("write-tree").decode().strip()


def take_back(run: Callable[..., bytes], base: str, edited: Sequence[SetupEdit]) -> None:
    """In the index of the git that `run` starts, undo the edits that are still as setup left them.

    A file that is as in `base` is no change, whatever setup once did to it.
    """
    paths = [edit.path for edit in edited]
    if not paths:
        return
    now = staged(run("ls-files", "--stage", "-z", "--", *paths))
    there = {
        os.fsdecode(path): (mode, id) for mode, id, path in tree_entries(run("ls-tree", "-r", "-z", base, "--", *paths))
    }
    kept = [edit for edit in edited if now.get(edit.path) == edit.after != there.get(edit.path)]
    run("update-index", "-z", "--index-info", stdin=b"".join(_line(edit.path, edit.before) for edit in kept))


def _line(path: str, entry: Entry) -> bytes:
    return b"%s %s\t%s\0" % (entry[0].encode(), entry[1].encode(), os.fsencode(path))


def staged(answer: bytes) -> dict[str, Entry]:
    """The entries in an `ls-files --stage -z` answer, by path."""
    found = {}
    for entry in fields(answer):
        facts, path = entry.split(b"\t", 1)
        mode, id, _ = facts.decode().split(" ")
        found[os.fsdecode(path)] = (mode, id)
    return found
