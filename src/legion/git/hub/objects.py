"""Writes commits and trees of which every byte is given, so that the same input always gives the same id."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from legion.domain.text import reveal
from legion.git.core.command import fields, git
from legion.git.core.history import FOLDER, History, TreeEntry
from legion.git.hub.repository import Hub

_SHA1 = 40
"""Digits of an id, where the repository does not use SHA-256."""
_CONTROLS = bytes({*range(0x20), 0x7F} - {*b"\t\n\r"})


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Whose name stands in a commit."""

    name: str
    email: str

    def stamp(self, when: int) -> bytes:
        """The line of a commit header: name, address, seconds since 1970 in UTC."""
        name, email = (re.sub(r"[<>\n\r\0]+", " ", part).strip(" .,:;\"'\\") for part in (self.name, self.email))
        return f"{name or 'legion'} <{email.replace(' ', '')}> {when} +0000".encode("utf-8", "replace")


@dataclass(frozen=True, kw_only=True)
class CommitText:
    """The parts of a commit that a replay keeps as they are. `encoding` is set where it is not UTF-8."""

    parents: tuple[str, ...]
    author: bytes
    encoding: bytes | None
    message: bytes


def write_commit(
    hub: Hub,
    *,
    tree: str,
    parents: tuple[str, ...],
    author: bytes,
    committer: bytes,
    message: str | bytes,
    encoding: bytes | None = None,
) -> str:
    """Store a commit and return its id."""
    content = commit_text(
        tree=tree, parents=parents, author=author, committer=committer, message=message, encoding=encoding
    )
    return store_object(hub.objects, b"commit", content, digits=len(tree))


def write_tree(hub: Hub, entries: Mapping[bytes, TreeEntry]) -> str:
    """Store one folder, which must not be empty, and return its id."""
    # The name of a folder is sorted as if it ended with a slash.
    order = sorted(entries.items(), key=lambda item: item[0] + b"/" if item[1].mode == FOLDER else item[0])
    content = b"".join(b"%s %s\0%s" % (entry.mode, name, bytes.fromhex(entry.id)) for name, entry in order)
    return store_object(hub.objects, b"tree", content, digits=len(order[0][1].id))


def store_object(objects: Path, kind: bytes, content: bytes, *, digits: int, durable: bool = True) -> str:
    """Write a loose object as git does: under another name, flushed to disk, then renamed. Returns its id.

    Without `durable` it is not flushed: for a store that is thrown away. `digits` is the length of an id.
    """
    stored = b"%s %d\0%s" % (kind, len(content), content)
    id = (hashlib.sha1(stored, usedforsecurity=False) if digits == _SHA1 else hashlib.sha256(stored)).hexdigest()
    place = objects / id[:2] / id[2:]
    if place.exists():
        return id
    place.parent.mkdir(exist_ok=True)
    # git removes files of this name when a killed process left them.
    handle, half = tempfile.mkstemp(prefix="tmp_obj_", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.compress(stored, 1))
            file.flush()
            if durable:
                os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o444)
        Path(half).rename(place)
    except BaseException:
        Path(half).unlink(missing_ok=True)
        raise
    return id


def commit_text(
    *,
    tree: str,
    parents: tuple[str, ...],
    author: bytes,
    committer: bytes,
    message: str | bytes,
    encoding: bytes | None = None,
) -> bytes:
    """The commit as git stores it."""
    text = _visible(message) if isinstance(message, str) or encoding is None else message
    lines = [b"tree " + tree.encode(), *(b"parent " + parent.encode() for parent in parents)]
    lines += [b"author " + author, b"committer " + committer]
    if encoding is not None:
        lines.append(b"encoding " + encoding)
    body = text.replace(b"\0", b"").strip(b"\n") + b"\n"
    return b"\n".join((*lines, b"", body))


def _visible(message: str | bytes) -> bytes:
    """Without anything that a terminal obeys or hides: `git log` in a pipe passes it on."""
    try:
        return reveal(message if isinstance(message, str) else message.decode()).encode()
    except UnicodeDecodeError:
        assert isinstance(message, bytes), "a text is not decoded"
        return message.translate(None, _CONTROLS)


def read_commit(hub: Hub, commit: str) -> CommitText:
    raw = hub.content(commit)
    head, _, message = raw.partition(b"\n\n")
    parents, author, encoding = [], b"", None
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"parent":
            parents.append(value.decode())
        elif key == b"author":
            author = value
        elif key == b"encoding":
            encoding = value
    here = () if hub.is_boundary(commit) else tuple(parents)
    return CommitText(parents=here, author=author, encoding=encoding, message=message)


def parents_of(stored: bytes) -> list[str]:
    """The parents of a loose commit, as `read_loose` returns it; none for any other object."""
    kind, _, content = stored.partition(b"\0")
    if not kind.startswith(b"commit "):
        return []
    head, _, _ = content.partition(b"\n\n")
    return [line.removeprefix(b"parent ").decode() for line in head.split(b"\n") if line.startswith(b"parent ")]


def read_loose(objects: Path, id: str) -> bytes:
    """A loose object with its header; empty where there is none."""
    try:
        return zlib.decompress((objects / id[:2] / id[2:]).read_bytes())
    except FileNotFoundError:
        return b""


def read_blobs(hub: History, blobs: list[str]) -> list[bytes]:
    return [hub.content(blob) for blob in blobs]


def tree_entries(answer: bytes) -> list[tuple[str, str, bytes]]:
    """(mode, id, path) of each entry in an `ls-tree -z` answer."""
    entries = []
    for entry in fields(answer):
        facts, path = entry.split(b"\t", 1)
        mode, _, name = facts.decode().split(" ")
        entries.append((mode, name, path))
    return entries


def blobs_by_path(repository: History, commit: str) -> dict[str, bytes]:
    """Every file of a commit of ours, whose paths are plain text."""
    listed = git("ls-tree", "-r", "-z", "--end-of-options", commit, git_dir=repository.path).stdout
    entries = tree_entries(listed)
    contents = read_blobs(repository, [blob for _, blob, _ in entries])
    return {path.decode(): content for (_, _, path), content in zip(entries, contents, strict=True)}
