"""Reads HEAD and the new commits of an agent's repository as plain files, without running git there.

Only what any agent's `git commit` leaves is read: a branch in a file, and a few loose objects. For anything else the
caller asks git in the sandbox. What is read is untrusted: no link is followed, sizes are limited, and the pack that is
made of it has to pass the same checks as a bundle out of the sandbox.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
