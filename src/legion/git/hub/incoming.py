"""Imports the commits that an agent made itself into the hub.

The agent's git runs only inside the sandbox; a small change is read as plain files (`agent_objects.py`). Both are
untrusted: they are checked in a folder of their own, and the hub receives the objects only when they are complete,
valid and built on the base.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import git
from legion.git.core.errors import GitError
from legion.git.hub.objects import parents_of, read_loose
from legion.git.hub.repository import Hub
from legion.system import crash
from legion.system.crash import Point
from legion.system.process import FinishedProcess

_HEADER_LIMIT = 64 * 1024
_BUNDLE = re.compile(rb"# v[23] git bundle\n(?:@[^\n]*\n|-[^\n]*\n)*([0-9a-f]{40,64}) HEAD\n\n")

_FOLDERS = re.compile("pack|[0-9a-f]{2}")
_NAMES = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}|pack-[0-9a-f]+\.(pack|idx|rev)")


def agent_commits(
    hub: Hub,
    *,
    base: str,
    run_sandboxed: Callable[[Sequence[str]], FinishedProcess],
    work_tree: Path | None = None,
    max_bytes: int = 1 << 30,
) -> str | None:
    """The agent's HEAD, now in the hub; None unless it is valid and adds commits to `base`.

    No ref names it yet: the caller keeps a commit that contains it. Until then nothing is lost, since the hub prunes
    nothing. `run_sandboxed` runs a command in the agent's sandbox with its worktree as current folder. Given the
    `work_tree`, a few loose objects are read as files first, which takes no sandbox and no git.
    """
    found = new_commits(work_tree) if work_tree is not None else None
    if found is not None and _adopt(hub, found.pack, base=base, head=found.head):
        return found.head
    bundle = run_sandboxed(("git", "bundle", "create", "--quiet", "-", "HEAD", "--not", base))
    header = _BUNDLE.match(bundle.stdout[:_HEADER_LIMIT])
    if bundle.code != 0 or header is None or len(bundle.stdout) > max_bytes:
        return None
    head = header[1].decode()
    return head if _adopt(hub, bundle.stdout[header.end() :], base=base, head=head) else None


def _adopt(hub: Hub, pack: bytes, *, base: str, head: str) -> bool:
    """Move the objects of a pack into the hub, if they are sound."""
    folder = hub.path / "incoming" / uuid.uuid4().hex
    (folder / "pack").mkdir(parents=True)
    try:
        if not _is_sound(hub, folder, pack, base=base, head=head) or _names_filters(hub, folder, base, head):
            return False
        adopt_objects(folder, hub.objects)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    crash.reach(Point.GIT_COMMITS_BEFORE_KEEP)
    return True


def _names_filters(hub: Hub, folder: Path, base: str, head: str) -> bool:
    """Whether there are filters, or a commit adds some: the agent's git has none, so it would store what they hide."""
    if hub.filters(base) is not None:
        return True
    words = ("--no-literal-pathspecs", "log", "-m", "--format=%H", r"-Gfilter|\[attr\]", f"{base}..{head}")
    place = ("--", ":(top,glob)**/.gitattributes")
    return bool(git(*words, *place, git_dir=hub.path, objects=folder, borrow=(hub.objects,)).stdout)


def is_at(work_tree: Path, commit: str) -> bool:
    """Whether the HEAD of an agent's repository plainly is `commit`, read without running git on it.

    False also where the answer would need git (packed refs, other formats): the caller then asks git in the sandbox.
    """
    return head_line(work_tree) == b"%s\n" % commit.encode()


def _is_sound(hub: Hub, folder: Path, pack: bytes, *, base: str, head: str) -> bool:
    def ask(*args: str, stdin: bytes = b"") -> FinishedProcess:
        return git(*args, git_dir=hub.path, objects=folder, borrow=(hub.objects,), stdin=stdin)

    try:
        if _is_small(pack):
            # Strict: every object is valid, and what it names is here or in the hub, which is complete.
            ask("unpack-objects", "-q", "--strict", stdin=pack)
            if _descends(folder, head, base):
                return True
        else:
            ask("index-pack", "--stdin", "--fix-thin", "--strict", stdin=pack)
        # Fails where an object is missing. The base is at the boundary exactly where the head descends from it.
        listed = ask("rev-list", "--objects", "--boundary", head, f"^{base}").stdout
    except GitError:
        return False
    return b"-%s\n" % base.encode() in listed


def _descends(folder: Path, head: str, base: str) -> bool:
    """Whether the loose commits in the folder lead from `head` to `base`: the new commits of any honest bundle do."""
    waiting, seen = [head], set[str]()
    while waiting:
        commit = waiting.pop()
        if commit == base:
            return True
        if commit not in seen:
            seen.add(commit)
            waiting += parents_of(read_loose(folder, commit))
    return False


def _is_small(pack: bytes) -> bool:
    """Whether it becomes loose objects, since every git process opens the index of every pack in the hub.

    By the number of objects in the header; git itself refuses a header that does not fit.
    """
    return len(pack) <= MOST_BYTES and int.from_bytes(pack[8:12], "big") <= MOST_OBJECTS


def adopt_objects(source: Path, objects: Path) -> None:
    """Move checked objects over. The index of a pack goes last, since a pack counts only with it."""
    for part in sorted(object_files(source), key=lambda part: part.suffix == ".idx"):
        target = objects / part.parent.name
        target.mkdir(exist_ok=True)
        if not (target / part.name).exists():
            part.rename(target / part.name)


def object_files(objects: Path) -> Iterator[Path]:
    """The packs and loose objects of a store: plain files, reached without following a link."""
    for folder in objects.iterdir():
        if _FOLDERS.fullmatch(folder.name) and not folder.is_symlink() and folder.is_dir():
            yield from (file for file in folder.iterdir() if _NAMES.fullmatch(file.name) and _is_plain(file))


def _is_plain(file: Path) -> bool:
    return stat.S_ISREG(file.lstat().st_mode)


# Reads HEAD and the new commits of an agent's repository as plain files, without running git there.
#
# Only what any agent's `git commit` leaves is read: a branch in a file, and a few loose objects. For anything else the
# caller asks git in the sandbox. What is read is untrusted: no link is followed, sizes are limited, and the pack that
# is made of it has to pass the same checks as a bundle out of the sandbox.

MOST_OBJECTS = 100
MOST_BYTES = 256 * 1024
_REF = re.compile(rb"ref: (refs/heads/[^\s\0]+)\n")
_LONGEST_REF = 4096
_HEAD = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\n")
_FAN_OUT = re.compile(r"[0-9a-f]{2}")
_REST_OF_ID = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
_LINK = re.compile(rb"(?:tree|parent) ([0-9a-f]+)")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A named pipe must not block us.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3}
"""The kinds of objects, as a pack numbers them."""
_SHA1_DIGITS = 40


@dataclass(frozen=True, kw_only=True)
class NewCommits:
    head: str
    pack: bytes
    """The objects that lead to `head`, as far as the agent's repository has them."""


@dataclass(frozen=True)
class _Object:
    kind: bytes
    content: bytes


def head_line(work_tree: Path) -> bytes:
    """The line that names the commit of HEAD; anything else where HEAD is not a plain file, or its branch is not."""
    head = _read_start(work_tree, (".git", "HEAD"))
    branch = _REF.fullmatch(head)
    if branch is None:
        return head
    parts = os.fsdecode(branch[1]).split("/")
    return b"" if ".." in parts else _read_start(work_tree, (".git", *parts))


def new_commits(work_tree: Path) -> NewCommits | None:
    """What leads to HEAD, where it consists of a few loose objects; None where git has to be asked."""
    line = _HEAD.fullmatch(head_line(work_tree))
    if line is None:
        return None
    head = line[1].decode()
    try:
        with _opened(work_tree, (".git", "objects")) as folder:
            found = _leading_to(head, folder)
    except (OSError, ValueError, zlib.error):
        return None
    return NewCommits(head=head, pack=_pack(found, digits=len(head))) if found else None


def _leading_to(head: str, folder: int) -> list[_Object]:
    """The loose objects that can be reached from `head`; none where there are too many. May raise ValueError."""
    there = _loose(folder)
    if len(there) > MOST_OBJECTS:
        return []
    found: list[_Object] = []
    waiting, room = [head], MOST_BYTES
    while waiting:
        id = waiting.pop()
        if id not in there:
            continue
        there.remove(id)
        one = _read_object(folder, id, most=room)
        room -= len(one.content)
        found.append(one)
        waiting += _links(one, length=len(id) // 2)
    return found


def _loose(folder: int) -> set[str]:
    """The ids of all loose objects, or of more than are wanted."""
    found: set[str] = set()
    with os.scandir(folder) as folders:
        for first in folders:
            if not _FAN_OUT.fullmatch(first.name):
                continue
            with _below(folder, first.name) as below, os.scandir(below) as files:
                for file in files:
                    if _REST_OF_ID.fullmatch(file.name):
                        found.add(first.name + file.name)
                    if len(found) > MOST_OBJECTS:
                        return found
    return found


def _read_object(folder: int, id: str, *, most: int) -> _Object:
    """Raises ValueError for a file that is no object of at most this size."""
    if most <= 0:
        raise ValueError("there is more to read than is read here")
    with _below(folder, id[:2]) as below:
        raw = _read_file(below, id[2:], most=most)
    inflating = zlib.decompressobj()
    stored = inflating.decompress(raw, most)
    header, _, content = stored.partition(b"\0")
    kind, _, size = header.partition(b" ")
    if not inflating.eof or kind not in _KINDS or size != b"%d" % len(content):
        raise ValueError(f"{id} is no object")
    return _Object(kind, content)


def _links(one: _Object, *, length: int) -> list[str]:
    """The ids that an object names. Raises ValueError for a broken tree."""
    if one.kind == b"commit":
        head = one.content.partition(b"\n\n")[0]
        return [found[1].decode() for line in head.split(b"\n") if (found := _LINK.fullmatch(line))]
    found_ids, at = [], 0
    while one.kind == b"tree" and at < len(one.content):
        at = one.content.index(b"\0", at) + 1 + length
        found_ids.append(one.content[at - length : at].hex())
    return found_ids


def _pack(objects: Sequence[_Object], *, digits: int) -> bytes:
    parts = [b"PACK", (2).to_bytes(4, "big"), len(objects).to_bytes(4, "big")]
    for one in objects:
        size = len(one.content)
        byte, size = _KINDS[one.kind] << 4 | size & 15, size >> 4
        header = bytearray()
        while size:
            header.append(byte | 128)
            byte, size = size & 127, size >> 7
        parts += [bytes((*header, byte)), zlib.compress(one.content, 1)]
    text = b"".join(parts)
    hashed = hashlib.sha1(text, usedforsecurity=False) if digits == _SHA1_DIGITS else hashlib.sha256(text)
    return text + hashed.digest()


def _read_start(folder: Path, parts: Sequence[str]) -> bytes:
    """The start of a regular file that is reached without following any link; empty for anything else."""
    try:
        with _opened(folder, parts[:-1]) as place:
            return _read_file(place, parts[-1], most=_LONGEST_REF)
    except (OSError, ValueError):
        return b""


def _read_file(folder: int, name: str, *, most: int) -> bytes:
    """The content of a regular file. Raises ValueError for anything else, and for more than `most` bytes."""
    handle = os.open(name, _FILE, dir_fd=folder)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > most:
            raise ValueError(f"{name} is no file of at most {most} bytes")
        return os.read(handle, most)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _opened(folder: Path, parts: Sequence[str]) -> Iterator[int]:
    """A handle of a folder that is reached without following any link."""
    with contextlib.ExitStack() as stack:
        handle = os.open(folder, _FOLDER)
        stack.callback(os.close, handle)
        for part in parts:
            handle = stack.enter_context(_below(handle, part))
        yield handle


@contextlib.contextmanager
def _below(folder: int, name: str) -> Iterator[int]:
    handle = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)
