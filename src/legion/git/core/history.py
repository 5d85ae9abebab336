"""Reads commits, trees and differences of a bare repository. Never writes."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from legion.git.core.command import as_text, fields, git
from legion.git.core.errors import GitError
from legion.system.process import FinishedProcess


class FileStatus(Enum):
    """How a file differs between two commits; a rename is one file deleted and one added."""

    ADDED = "A"
    MODIFIED = "M"
    DELETED = "D"
    TYPE_CHANGED = "T"


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One changed file. The counts are None where git sees no lines (binary or very big files)."""

    path: str
    status: FileStatus
    additions: int | None
    deletions: int | None
    content: str = ""
    """Mode and id of the present entry; zeros where nothing does."""


@dataclass(frozen=True, kw_only=True)
class CommitFacts:
    """One commit for a list: parents in order, the author's name and the first line of the message."""

    commit: str
    parents: tuple[str, ...]
    author: str
    subject: str


class TreeEntry(NamedTuple):
    mode: bytes
    id: str


FOLDER = b"40000"
GITLINK = b"160000"
"""The mode of a submodule, or of a repository inside another."""
_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_CHANGES: dict[tuple[Path, str, str], tuple[tuple[FileChange, ...], str]] = {}
_MOST_REMEMBERED = 200
_LONGEST_REMEMBERED = 50_000


class History:
    """A bare repository, seen by readers. Names and ids given to it are data and never become options."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def objects(self) -> Path:
        return self.path / "objects"

    def _git(
        self, *args: str | os.PathLike[str], stdin: bytes = b"", accept: tuple[int, ...] = (0,)
    ) -> FinishedProcess:
        return git(*args, git_dir=self.path, stdin=stdin, accept=accept)

    def resolve(self, name: str) -> str | None:
        """The commit that a ref or an id names."""
        return self._identify(f"{name}^{{commit}}")

    def tree_of(self, commit: str) -> str:
        tree = self._identify(f"{commit}^{{tree}}")
        if tree is None:
            raise GitError(("git", "cat-file"), f"there is no commit {commit}")
        return tree

    def _identify(self, name: str) -> str | None:
        answer = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", name, accept=(0, 1, 128))
        return answer.text.split()[-1] if answer.code == 0 else None

    def content(self, object: str) -> bytes:
        """What is stored under an id."""
        return self.contents([object])[0]

    def contents(self, names: Sequence[str]) -> list[bytes]:
        """What is stored under ids, or under `COMMIT:PATH`; empty where nothing is."""
        raw, at, found = (
            self._git("cat-file", "--batch", stdin="".join(f"{one}\n" for one in names).encode()).stdout,
            0,
            [],
        )
        for _ in names:
            end = raw.index(b"\n", at)
            size = raw[at:end].rpartition(b" ")[2]
            start = end + 1
            found.append(raw[start : start + int(size)] if size.isdigit() else b"")
            at = start + int(size) + 1 if size.isdigit() else start
        return found

    def entries(self, tree: str) -> dict[bytes, TreeEntry]:
        """The entries of one tree by name, without those of its folders."""
        raw, found, at = self.content(tree), dict[bytes, TreeEntry](), 0
        length = len(tree) // 2
        while at < len(raw):
            blank, end = raw.index(b" ", at), raw.index(b"\0", at)
            found[raw[blank + 1 : end]] = TreeEntry(raw[at:blank], raw[end + 1 : end + 1 + length].hex())
            at = end + 1 + length
        return found

    def differences(self, one: str, other: str) -> Iterator[tuple[bytes, TreeEntry | None, TreeEntry | None]]:
        """Path and both entries of everything but folders in which two trees differ. Equal folders are not read."""
        before, after = (self.entries(tree) if tree else {} for tree in (one, other))
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name), after.get(name)
            if old == new:
                continue
            folders = [entry if entry is not None and entry.mode == FOLDER else None for entry in (old, new)]
            if any(folders):
                below = [entry.id if entry is not None else "" for entry in folders]
                for path, was, now in self.differences(below[0], below[1]):
                    yield b"%s/%s" % (name, path), was, now
            old, new = (None if entry is folder else entry for entry, folder in zip((old, new), folders, strict=True))
            if old is not None or new is not None:
                yield name, old, new

    def is_ancestor(self, ancestor: str, commit: str) -> bool:
        answer = self._git("merge-base", "--is-ancestor", "--end-of-options", ancestor, commit, accept=(0, 1))
        return answer.code == 0

    def merge_base(self, one: str, other: str) -> str | None:
        return self._git("merge-base", "--end-of-options", one, other, accept=(0, 1)).text.strip() or None

    def read_file(self, commit: str, path: str) -> bytes | None:
        """The content of a regular file in a commit; None for anything else."""
        entry = self._ls_tree("-z", commit, path).stdout
        mode, _, rest = entry.partition(b" ")
        if mode not in (b"100644", b"100755"):
            return None
        return self._git("cat-file", "blob", rest.split(b"\t")[0].split(b" ")[1].decode()).stdout

    def _ls_tree(self, *words: str, accept: tuple[int, ...] = (0,)) -> FinishedProcess:
        """Options, commit, path. A `--` before the path would name a file of that name after --end-of-options."""
        *options, commit, path = words
        return self._git("ls-tree", *options, "--end-of-options", commit, path, accept=accept)

    def versions(self, commit: str, path: str, *, most: int) -> Iterator[bytes]:
        """The contents of a file in the history of a commit, the newest first, without its content in the commit."""
        words = ("log", f"--max-count={most}", "--format=%H", "--end-of-options", commit, "--", path)
        for changed in self._git(*words).text.split()[1:]:
            content = self.read_file(changed, path)
            if content is not None:
                yield content

    def files_in(self, commit: str, folder: str) -> tuple[str, ...]:
        """The paths of everything below a folder."""
        there = self._ls_tree("-r", "-z", "--name-only", commit, f"{folder}/").stdout
        return tuple(as_text(path) for path in fields(there))

    def holds(self, commit: str, path: str) -> bool:
        """Is there a file (or link, or submodule) at this path? The path is untrusted."""
        answer = self._ls_tree("-z", commit, path, accept=(0, 128))
        mode, _, rest = answer.stdout.partition(b" ")
        return (
            answer.code == 0 and mode not in (b"", b"040000") and rest.partition(b"\t")[2] == os.fsencode(path) + b"\0"
        )

    def changed_files(self, base: str, head: str) -> tuple[FileChange, ...]:
        """Every file that differs, in the order of the paths."""
        return self._changes(base, head)[0]

    def patch(self, base: str, head: str) -> str:
        """The difference for programs: no context, and a rename is one file deleted and one added."""
        return self._changes(base, head)[1]

    def lines_changed(self, changes: Iterable[tuple[str, str]]) -> dict[str, int]:
        """By head of each (base, head): lines added and removed. A file in which git sees no lines counts as one."""
        return {
            head: sum(
                1 if file.additions is None else file.additions + (file.deletions or 0)
                for file in self.changed_files(base, head)
            )
            for base, head in changes
        }

    def _changes(self, base: str, head: str) -> tuple[tuple[FileChange, ...], str]:
        """The changed files and the patch, by one process. What was asked for last is remembered: ids never change."""
        key = (self.path, base, head)
        known = _CHANGES.get(key)
        if known is not None:
            return known
        words = ("diff-tree", "-r", "-z", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")
        kinds = ("--raw", "--numstat", "--patch", "--unified=0")
        raw = self._git(*words, *kinds, "--end-of-options", base, head, "--").stdout
        found = _parse_changes(raw)
        if _ID.fullmatch(base) and _ID.fullmatch(head) and len(raw) < _LONGEST_REMEMBERED:
            _CHANGES[key] = found
            while len(_CHANGES) > _MOST_REMEMBERED:
                # Another thread may have taken the same one away.
                _CHANGES.pop(next(iter(_CHANGES), key), None)
        return found

    def commits_changing(self, path: str, changes: Iterable[tuple[str, str]]) -> frozenset[str]:
        """The heads of those (base, head) between which the file at `path` differs, with one process."""
        words = ("diff-tree", "--stdin", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--name-only")
        asked = tuple(changes)
        told = self._git(*words, "--", path, stdin="".join(f"{head} {base}\n" for base, head in asked).encode()).text
        return frozenset(head for _, head in asked) & frozenset(told.splitlines())

    def diff(self, base: str, head: str) -> str:
        """The difference as people read it."""
        words = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")
        return self._git(*words, "--end-of-options", base, head, "--").text

    def commits_between(self, base: str, head: str) -> tuple[CommitFacts, ...]:
        """What `head` has and `base` has not, the oldest first."""
        answer = self._git(
            "log", "-z", "--topo-order", "--reverse", "--format=%H%x01%P%x01%an%x01%s", "--end-of-options",
            head, f"^{base}", "--",
        )  # fmt: skip
        commits = []
        for line in answer.stdout.split(b"\0"):
            if line:
                commit, parents, author, subject = (as_text(part) for part in line.split(b"\x01", 3))
                commits.append(
                    CommitFacts(commit=commit, parents=tuple(parents.split()), author=author, subject=subject)
                )
        return tuple(commits)

    def first_parents(self, base: str, head: str) -> tuple[str, ...]:
        """The commits that led from `base` to `head`, the oldest first, without what was merged in."""
        words = ("rev-list", "--first-parent", "--reverse", "--end-of-options")
        return tuple(self._git(*words, head, f"^{base}", "--").text.split())

    def tags(self) -> bytes:
        """All tags, one `id name` line each, sorted by name. Read from git's files: every start of work asks for it."""
        # In this order, since packing writes the packed file before it removes a loose one.
        loose = _loose_refs(self.path, "refs/tags")
        found = dict(_packed_tags(self.path)) | loose
        return b"".join(b"%b %b\n" % (found[name], name) for name in sorted(found))

    def files(self, commit: str) -> tuple[str, ...]:
        """The paths of all files, links and submodules."""
        paths = self._git("ls-tree", "-r", "-z", "--name-only", "--end-of-options", commit).stdout
        return tuple(as_text(path) for path in fields(paths))

    def blobs(self, commit: str) -> dict[str, str]:
        """The ids of what is in all files and links, by path."""
        listed = fields(self._git("ls-tree", "-r", "-z", "--end-of-options", commit).stdout)
        entries = (entry.split(b"\t", 1) for entry in listed)
        return {as_text(path): facts.split(b" ")[2].decode() for facts, path in entries if b" blob " in facts}

    def files_with(self, commit: str, pattern: str) -> tuple[str, ...]:
        """The paths of text files with a line that fits an extended regular expression."""
        words = ("grep", "-l", "-z", "-I", "--full-name", "-E", "-e", pattern, commit, "--")
        found = fields(self._git(*words, accept=(0, 1)).stdout)
        return tuple(as_text(path).partition(":")[2] for path in found)

    def bytes_on_disk(self, commit: str) -> int:
        """What the files of a commit take when checked out, counted in blocks."""
        answer = self._git("ls-tree", "-r", "-z", "--format=%(objectsize)", "--end-of-options", commit)
        return sum(-(-int(size) // 4096) * 4096 for size in fields(answer.stdout) if size.isdigit())


def _parse_changes(answer: bytes) -> tuple[tuple[FileChange, ...], str]:
    """The answer of `diff-tree -z --raw --numstat --patch`: two fields per file, one per file, an empty one, text."""
    at, raw = 0, []
    while answer.startswith(b":", at):
        end = answer.index(b"\0", at)
        stop = answer.index(b"\0", end + 1)
        raw.append((answer[at + 1 : end], answer[end + 1 : stop]))
        at = stop + 1
    changes = []
    for facts, path in raw:
        end = answer.index(b"\0", at)
        added, deleted, _ = answer[at:end].split(b"\t", 2)
        at = end + 1
        _, mode, _, blob, status = facts.decode().split(" ")
        changes.append(
            FileChange(
                path=as_text(path),
                status=FileStatus(status),
                additions=None if added == b"-" else int(added),
                deletions=None if deleted == b"-" else int(deleted),
                content=f"{mode} {blob}",
            )
        )
    return tuple(changes), answer[at:].removeprefix(b"\0").decode("utf-8", "replace")


def _packed_tags(git_dir: Path) -> Iterator[tuple[bytes, bytes]]:
    """(name, id) of each. The commit of an annotated tag is on a line of its own (`^id`) and is skipped."""
    try:
        content = (git_dir / "packed-refs").read_bytes()
    except FileNotFoundError:
        return
    # The refs of ended tickets come before the tags and become many thousands; only what follows them is parsed.
    first = content.find(b" refs/tags/")
    if first < 0:
        return
    for line in content[content.rfind(b"\n", 0, first) + 1 :].splitlines():
        id, _, name = line.partition(b" ")
        if name.startswith(b"refs/tags/"):
            yield name, id


def _loose_refs(git_dir: Path, below: str) -> dict[bytes, bytes]:
    """Ids by name. Whatever goes away meanwhile was deleted, or is in the packed file by now."""
    found: dict[bytes, bytes] = {}
    for folder, _, names in os.walk(git_dir / below):
        for name in names:
            file = Path(folder, name)
            with contextlib.suppress(FileNotFoundError):
                content = file.read_bytes().strip()
                if not name.endswith(".lock") and not content.startswith(b"ref:"):
                    found[os.fsencode(file.relative_to(git_dir))] = content
    return found


# The last lines of a commit's message, which programs read: `Ticket: 12`.

_TRAILER = re.compile(rb"[A-Za-z][A-Za-z0-9-]*: .*")


def with_trailers(message: bytes, trailers: Mapping[str, str]) -> bytes:
    """The message with these among its trailers. What it said itself under the same names goes; an empty value adds
    nothing.
    """
    if not trailers:
        return message
    ours = {name.lower().encode() for name in trailers}
    body, theirs = _split(message.strip(b"\n"))
    kept = [line for line in theirs if line.split(b":")[0].lower() not in ours]
    block = b"\n".join((*kept, *(_line(name, value) for name, value in trailers.items() if value)))
    return b"\n\n".join(part for part in (body, block) if part) + b"\n"


def trailer(message: bytes, name: str) -> str:
    """What the message says under this name among its trailers; empty where it says nothing."""
    start = name.lower().encode() + b":"
    said = [line[len(start) :] for line in _split(message.strip(b"\n"))[1] if line.lower().startswith(start)]
    return said[-1].decode("ascii", "replace").strip() if said else ""


def _split(message: bytes) -> tuple[bytes, list[bytes]]:
    """The text, and its last paragraph where that is nothing but trailers. A subject alone is none."""
    body, blank, last = message.rpartition(b"\n\n")
    lines = last.split(b"\n")
    if blank and all(_TRAILER.fullmatch(line) for line in lines):
        return body.rstrip(b"\n"), lines
    return message, []


def _line(name: str, value: str) -> bytes:
    """ASCII, because a replayed message may be in any encoding."""
    return f"{name}: {' '.join(value.split())}".encode("ascii", "replace")
