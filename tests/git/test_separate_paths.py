"""A merge without a process gives what git gives, or leaves it to git."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

import pytest

from legion.git.core.history import TreeEntry
from legion.git.hub.objects import write_commit, write_tree
from legion.git.hub.repository import Hub
from legion.git.merge.partial_trees import common_commit, merge_separate
from tests.git.making import AGENT, WHEN, Grounds

PATHS = ("a", "b", "d/x", "d/y", "d/e/z", "f/x")
Files = dict[str, TreeEntry]


@pytest.fixture
def blobs(grounds: Grounds) -> list[str]:
    words = ("hash-object", "-w", "--stdin")
    return [grounds.hub._git(*words, stdin=b"%d\n" % number * 20).text.strip() for number in range(4)]


def file(blob: str) -> TreeEntry:
    return TreeEntry(b"100644", blob)


def tree(hub: Hub, files: Files) -> str:
    inside: dict[bytes, TreeEntry] = {}
    folders: dict[str, Files] = {}
    for path, entry in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(name, {})[rest] = entry
        else:
            inside[name.encode()] = entry
    inside |= {name.encode(): TreeEntry(b"40000", tree(hub, some)) for name, some in folders.items()}
    return write_tree(hub, inside)


def commit(hub: Hub, files: Files, *parents: str) -> str:
    stamp = AGENT.stamp(WHEN)
    return write_commit(
        hub, tree=tree(hub, files), parents=parents, author=stamp, committer=stamp, message=f"{sorted(files)}"
    )


def merged_by_git(hub: Hub, one: str, other: str) -> str | None:
    answer = hub._git("merge-tree", "--write-tree", "-z", one, other, accept=(0, 1))
    return answer.stdout.partition(b"\0")[0].decode() if answer.code == 0 else None


class Random:
    """Histories with merges, in which files are added, changed and sometimes removed."""

    def __init__(self, hub: Hub, blobs: list[str], seed: int) -> None:
        self._hub = hub
        self._blobs = blobs
        self._random = random.Random(seed)
        self._files: dict[str, Files] = {}

    def commits(self, count: int) -> list[str]:
        for _ in range(count):
            known = list(self._files)
            parents = self._random.sample(known, min(len(known), self._random.choice((1, 1, 2))))
            files = {"kept": file(self._blobs[0])}
            for parent in parents:
                files |= self._files[parent]
            self._edit(files)
            self._files[commit(self._hub, files, *parents)] = files
        return list(self._files)

    def _edit(self, files: Files) -> None:
        for path in self._random.sample(PATHS, self._random.choice((0, 1, 1, 2))):
            if self._random.random() < 0.15:
                files.pop(path, None)
            else:
                files[path] = file(self._random.choice(self._blobs))


def test_what_is_merged_here_is_what_git_merges(grounds: Grounds, blobs: list[str], seed: int):
    hub, answered = grounds.hub, 0
    for number in range(3):
        commits = Random(hub, blobs, seed + number).commits(8)
        for one, other in itertools.combinations(commits, 2):
            base, made = common_commit(hub, one, other), merge_separate(hub, one, other)
            if base is not None:
                assert hub._git("merge-base", "--all", one, other).text.split() == [base]
            if made is not None:
                assert made == merged_by_git(hub, one, other)
                answered += 1
    assert answered


class TestOneChange:
    """`mine` and `theirs` are put on one commit; None takes a file away."""

    @pytest.fixture
    def start(self, blobs: list[str]) -> Files:
        return {"a": file(blobs[0]), "d/x": file(blobs[1]), "d/y": file(blobs[2])}

    def sides(self, hub: Hub, start: Files, *sides: Mapping[str, TreeEntry | None]) -> tuple[str, str]:
        base = commit(hub, start)
        mine, theirs = (
            commit(hub, {path: entry for path, entry in {**start, **side}.items() if entry is not None}, base)
            for side in sides
        )
        return mine, theirs

    def test_new_folders_and_names_next_to_folders_are_sorted_as_git_sorts_them(
        self, grounds: Grounds, start: Files, blobs: list[str]
    ):
        new = file(blobs[3])
        mine, theirs = self.sides(grounds.hub, start, {"d/z": new, "d-": new}, {"d/new/n": new, "d.c": new, "d0": new})
        made = merge_separate(grounds.hub, mine, theirs)
        assert made is not None
        assert made == merged_by_git(grounds.hub, mine, theirs)
        grounds.hub._git("fsck", "--strict", "--no-dangling")

    def test_a_chain_of_merges_is_followed(self, grounds: Grounds, start: Files, blobs: list[str]):
        hub, base = grounds.hub, commit(grounds.hub, start)
        target, files = base, dict(start)
        for number in range(5):
            one = commit(hub, {**start, f"new{number}": file(blobs[3])}, base)
            made = merge_separate(hub, target, one)
            files[f"new{number}"] = file(blobs[3])
            assert made == tree(hub, files)
            target = commit(hub, files, target, one)

    def test_a_folder_that_was_renamed_is_left_to_git(self, grounds: Grounds, start: Files, blobs: list[str]):
        moved = {"d/x": None, "d/y": None, "e/x": start["d/x"], "e/y": start["d/y"]}
        mine, theirs = self.sides(grounds.hub, start, moved, {"d/new": file(blobs[3])})
        assert merge_separate(grounds.hub, mine, theirs) is None
        assert merge_separate(grounds.hub, theirs, mine) is None

    @pytest.mark.parametrize("path", ["a", "new", "new/inside"])
    def test_paths_in_common_are_left_to_git(self, grounds: Grounds, start: Files, blobs: list[str], path: str):
        mine, theirs = self.sides(grounds.hub, start, {path: file(blobs[2])}, {path.split("/")[0]: file(blobs[3])})
        assert merge_separate(grounds.hub, mine, theirs) is None

    def test_submodules_are_left_to_git(self, grounds: Grounds, start: Files, blobs: list[str]):
        link = TreeEntry(b"160000", "1" * 40)
        mine, theirs = self.sides(grounds.hub, start, {"b": file(blobs[3])}, {"sub": link})
        assert merge_separate(grounds.hub, mine, theirs) is None

    def test_no_common_history_and_many_paths_are_left_to_git(self, grounds: Grounds, start: Files, blobs: list[str]):
        alone = commit(grounds.hub, {"b": file(blobs[0])})
        many: dict[str, TreeEntry | None] = {f"n{number}": file(blobs[0]) for number in range(301)}
        mine, theirs = self.sides(grounds.hub, start, {"b": file(blobs[3])}, many)
        assert merge_separate(grounds.hub, mine, alone) is None
        assert merge_separate(grounds.hub, mine, theirs) is None
