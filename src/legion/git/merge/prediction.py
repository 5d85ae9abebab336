"""Merging changes in work with each other, in memory: one git process for all pairs, nothing of it in the hub.

New objects go to stores of our own that are thrown away when they have grown: one for the merges, and one for each
tree, which is read in a sandbox, as for a snapshot.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from legion.domain.landing import definitions
from legion.domain.landing.conflicts import ConflictSpan
from legion.git.core.command import as_text, git
from legion.git.core.errors import GitProblem
from legion.git.hub.objects import commit_text, store_object
from legion.git.hub.repository import Hub
from legion.git.merge.candidates import attribute_tree
from legion.git.merge.partial_trees import overlap
from legion.git.trees.live import BorrowingHistory, Call, LiveTree, Quarantine
from legion.git.trees.obstacles import ALL_BUT, pathspecs
from legion.git.trees.setup_changes import SetupEdit, take_back
from legion.git.trees.staged_files import stage
from legion.system.process import FinishedProcess

_NO_FSYNC = {"core.fsync": "none", "core.hooksPath": "/dev/null"}
_PATIENCE = 10.0
"""Seconds for one tree; a tree that takes longer is left out of this round."""
_AT_ONCE = 2
_MOST_MERGES = 2000
"""After so many the store is thrown away and filled again."""
_MOST_PLACES = 20
_MOST_NAMES = 3
_LONGEST = 1 << 20
"""Bytes: the lines of a longer file are not looked for."""
_MARK = re.compile(rb"(<{7}|\|{7}|={7}|>{7})(?: |$)")
_WHEN = b"legion <legion@localhost> 0 +0000"


@dataclass(frozen=True, kw_only=True)
class OpenChange:
    """A change in work: its files in `tree`, or, where it is proposed already, the commit that holds it."""

    id: int
    base: str
    tree: LiveTree | None = None
    index: Path | None = None
    """What is known of the files in `tree`, if anything: it spares reading all of them."""
    commit: str | None = None
    edited: tuple[SetupEdit, ...] = ()
    """What [setup] changed in `tree` before the agent started."""


@dataclass(frozen=True, kw_only=True)
class _SeenChange:
    """How a change stood when it was looked at last."""

    base: str
    tree: str
    """Empty where the change was proposed already."""
    commit: str
    paths: frozenset[bytes]


class Prediction:
    """One project's. Not for several threads at once."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        self._hub = hub
        self._folder = folder
        self._objects = folder / "objects"
        self._looks: dict[int, _SeenChange] = {}
        self._known: dict[tuple[str, str], tuple[ConflictSpan, ...]] = {}
        self._merges = 0

    def forget(self) -> None:
        """Throw away what was stored."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._looks, self._known, self._merges = {}, {}, 0

    def look(self, changes: Sequence[OpenChange], target: str) -> dict[tuple[int, int], tuple[ConflictSpan, ...]]:
        """The pairs that conflict, as they stand now, each with its places; 0 is the target."""
        if self._merges > _MOST_MERGES:
            self.forget()
        (self._objects / "pack").mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="look") as pool:
            found = zip(changes, pool.map(self._see, changes), strict=True)
            looks = {change.id: seen for change, seen in found if seen is not None}
        self._looks = looks
        for gone in {place.name for place in self._stores()} - {str(change.id) for change in changes}:
            shutil.rmtree(self._folder / gone, ignore_errors=True)
        sides = {id: (look.commit, look.paths) for id, look in looks.items()}
        pairs = {
            (one, other): (sides[one][0], sides[other][0])
            for position, one in enumerate(sides)
            for other in list(sides)[position + 1 :]
            if overlap(sides[one][1], sides[other][1])
        }
        for id, look in looks.items():
            if look.base != target and overlap(look.paths, self._between(look.base, target)):
                pairs[(id, 0)] = (look.commit, target)
        self._merge(target, [pair for pair in dict.fromkeys(pairs.values()) if pair not in self._known])
        self._known = {pair: self._known[pair] for pair in pairs.values() if pair in self._known}
        return {ids: self._known[pair] for ids, pair in pairs.items() if self._known.get(pair)}

    def tree(self, change: OpenChange) -> str | None:
        """The files of a change in work at this moment, as the name of a git tree; None where nothing can be seen."""
        (self._objects / "pack").mkdir(parents=True, exist_ok=True)
        look = self._see(change)
        if look is None:
            return None
        self._looks[change.id] = look
        return look.tree

    def _see(self, change: OpenChange) -> _SeenChange | None:
        """None where nothing is changed yet, or nothing could be seen this time."""
        try:
            if change.tree is None:
                return self._proposed(change)
            return self._in_work(change, change.tree)
        except (GitProblem, OSError):
            # The tree may go away while we look, or an agent may write faster than we read. Nothing half-read stays.
            shutil.rmtree(self._folder / str(change.id), ignore_errors=True)
            return None

    def _proposed(self, change: OpenChange) -> _SeenChange:
        assert change.commit is not None, "a change is in a tree or in a commit"
        before = self._looks.get(change.id)
        if before is not None and before.commit == change.commit:
            return before
        paths = self._between(change.base, change.commit)
        return _SeenChange(base=change.base, tree="", commit=change.commit, paths=paths)

    def _in_work(self, change: OpenChange, tree: LiveTree) -> _SeenChange | None:
        filters = self._hub.filters(change.base)
        if filters is not None:
            # Nothing that a filter could write is used again.
            shutil.rmtree(self._folder / str(change.id), ignore_errors=True)
        place = Quarantine(self._hub, self._folder / str(change.id), filters)

        def run(*calls: Call) -> tuple[FinishedProcess, ...]:
            return place.run(tree, *calls, timeout=_PATIENCE, durable=False)

        before = self._looks.get(change.id)
        if before is None or not before.tree or before.base != change.base or not place.index.exists():
            place.index.unlink(missing_ok=True)
            if change.index is not None and change.index.exists():
                place.put_index(change.index)
            before = None

        def calls(large: Sequence[str]) -> tuple[Call, ...]:
            known = ("-i", "-m") if place.index.exists() else ()
            begin = () if before is not None and known else (Call(("read-tree", *known, change.base)),)
            add = Call(ALL_BUT, stdin=pathspecs(large), accept=(0, 1))
            return (*begin, add, Call(("write-tree",), if_printed=True))

        last = self._hub.tree_of(change.base) if before is None else before.tree

        def result(answers: Sequence[FinishedProcess]) -> str:
            return answers[-1].text.strip() if answers[-1].argv[0] == "write-tree" else last

        tree_id = stage(place, tree, calls, base=change.base, result=result, timeout=_PATIENCE, durable=False).tree
        if tree_id == last:
            return before or self._unchanged(change.base)
        if change.edited:
            take_back(lambda *words, stdin=b"": run(Call(words, stdin=stdin))[0].stdout, change.base, change.edited)
            tree_id = run(Call(("write-tree",)))[0].text.strip()
        if before is not None and before.tree == tree_id:
            return before
        paths = self._paths(self._hub.tree_of(change.base), tree_id)
        if not paths:
            return self._unchanged(change.base)
        text = commit_text(tree=tree_id, parents=(change.base,), author=_WHEN, committer=_WHEN, message="a look")
        commit = store_object(self._objects, b"commit", text, digits=len(tree_id), durable=False)
        return _SeenChange(base=change.base, tree=tree_id, commit=commit, paths=paths)

    def _unchanged(self, base: str) -> _SeenChange:
        return _SeenChange(base=base, tree=self._hub.tree_of(base), commit=base, paths=frozenset())

    def _between(self, base: str, other: str) -> frozenset[bytes]:
        return self._paths(self._hub.tree_of(base), self._hub.tree_of(other))

    def _paths(self, one: str, other: str) -> frozenset[bytes]:
        """Where two trees differ; each may be in the hub or in a store of our own."""
        history = BorrowingHistory(self._hub, [place / "objects" for place in self._stores()])
        return frozenset(path for path, _, _ in history.differences(one, other))

    def _stores(self) -> list[Path]:
        """The quarantine of each tree."""
        return [place for place in self._folder.iterdir() if place.name.isdecimal()]

    def _merge(self, target: str, pairs: Sequence[tuple[str, str]]) -> None:
        if not pairs:
            return
        self._merges += len(pairs)
        asked = "".join(f"{one} {other}\n" for one, other in pairs).encode()
        attributes = attribute_tree(self._hub, target)
        answer = self._git(
            "merge-tree", "--write-tree", "--stdin", "-z", "--messages", stdin=asked, attributes=attributes
        )
        merged = list(_answers(answer.stdout))
        blobs = self._blobs(merged)
        for pair, one in zip(pairs, merged, strict=True):
            self._known[pair] = tuple(_places(one, blobs))[:_MOST_PLACES]

    def _blobs(self, merged: Iterable[_Merged]) -> Mapping[str, bytes]:
        """The marked files and both sides of each, with one process for the names and one for the contents."""
        wanted: dict[str, None] = {}
        for one in merged:
            for path, (mine, theirs) in one.stages.items():
                wanted |= dict.fromkeys((f"{one.tree}:{as_text(path)}", mine, theirs))
        names = [name for name in wanted if name and "\n" not in name]
        if not names:
            return {}
        raw = self._git("cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode()).stdout
        found, at = {}, 0
        for name in names:
            end = raw.index(b"\n", at)
            head = raw[at:end].split(b" ")
            at = end + 1
            if head[-1] != b"missing":
                size = int(head[-1])
                found[name] = raw[at : at + size]
                at += size + 1
        return found

    def _git(self, *args: str, attributes: Path | None = None, stdin: bytes = b"") -> FinishedProcess:
        return git(
            *args,
            git_dir=self._hub.path,
            work_tree=attributes,
            objects=self._objects,
            borrow=[self._hub.objects, *(place / "objects" for place in self._stores())],
            stdin=stdin,
            timeout=_PATIENCE,
            settings=_NO_FSYNC,
        )


@dataclass(frozen=True, kw_only=True)
class _Merged:
    tree: str
    stages: Mapping[bytes, tuple[str, str]]
    """By path: the blobs of both sides, empty where a side has none. Nothing where the merge is clean."""
    named: tuple[bytes, ...]
    """Paths of conflicts that have no lines."""


def _answers(raw: bytes) -> Iterator[_Merged]:
    """What `merge-tree --stdin -z` says about each pair: status, tree, stages, an empty field, messages, another."""
    parts = iter(raw.split(b"\0"))
    for status in parts:
        if not status:
            return
        tree = next(parts).decode()
        stages: dict[bytes, list[str]] = {}
        while entry := next(parts):
            facts, path = entry.split(b"\t", 1)
            _, blob, stage = facts.decode().split(" ")
            sides = stages.setdefault(path, ["", ""])
            if stage in "23":
                sides[int(stage) - 2] = blob
        named: dict[bytes, None] = {}
        while count := next(parts):
            paths = [next(parts) for _ in range(int(count))]
            kind, _ = next(parts), next(parts)
            if kind.startswith(b"CONFLICT"):
                named |= dict.fromkeys(paths)
        if status == b"1":
            stages, named = {}, {}
        yield _Merged(tree=tree, stages={path: (one, two) for path, (one, two) in stages.items()}, named=tuple(named))


def _places(merged: _Merged, blobs: Mapping[str, bytes]) -> Iterator[ConflictSpan]:
    for path in dict.fromkeys((*merged.stages, *merged.named)):
        mine, theirs = merged.stages.get(path, ("", ""))
        marked = blobs.get(f"{merged.tree}:{as_text(path)}", b"")
        found = list(_marked(as_text(path), marked, blobs.get(mine, b""), blobs.get(theirs, b"")))
        yield from found or [ConflictSpan(path=as_text(path), mine=(0, 0), theirs=(0, 0))]


def _marked(path: str, text: bytes, mine: bytes, theirs: bytes) -> Iterator[ConflictSpan]:
    """Each marked part, found again in the lines of both sides."""
    if max(len(text), len(mine), len(theirs)) > _LONGEST:
        return
    known = definitions.definitions(path, mine.decode("utf-8", "replace"))
    sides: tuple[list[bytes], list[bytes]] = ([], [])
    from_mine, from_theirs = 0, 0
    at: int | None = None
    for line in text.split(b"\n"):
        mark = _MARK.match(line)
        if mark is not None and mark[1][:1] == b"<":
            sides, at = ([], []), 0
        elif mark is not None and mark[1][:1] == b"=" and at == 0:
            at = 1
        elif mark is not None and mark[1][:1] == b">" and at == 1:
            first, from_mine = _span(sides[0], mine.split(b"\n"), from_mine)
            second, from_theirs = _span(sides[1], theirs.split(b"\n"), from_theirs)
            name = ", ".join(definitions.names_at(known, *first)[:_MOST_NAMES])
            yield ConflictSpan(path=path, mine=first, theirs=second, name=name)
            at = None
        elif at is not None:
            sides[at].append(line)


def _span(part: list[bytes], lines: list[bytes], start: int) -> tuple[tuple[int, int], int]:
    """The numbers of the first and last line of a part, looked for from `start` on, and where to look next."""
    for first in range(start, len(lines) - len(part) + 1 if part else start):
        if lines[first : first + len(part)] == part:
            return (first + 1, first + len(part)), first + len(part)
    return (0, 0), start
