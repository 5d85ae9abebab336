"""Attributes for merging, taken from a commit and not from any checkout.

git reads .gitattributes from a work tree, so a folder that holds nothing else is made from the commit. Merge drivers
with a program behind them become "no automatic merge": a file that both sides changed is then a conflict.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import uuid
from pathlib import Path

from legion.git.core.command import fields, git
from legion.git.hub.objects import read_blobs
from legion.git.hub.repository import Hub
from legion.git.person.inspect import ATTRIBUTE_FILES

# The id of the tree without files, by the length of ids in the repository.
_EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_PLAIN_FILE = (b"100644", b"100755")
_CUSTOM_DRIVER = re.compile(rb"(?<=[ \t])merge=(?!(?:union|binary|text)(?:\s|$))\S+")

# The last tree asked for, by hub: targets follow each other, and the way from one to the next is short.
_LAST: dict[Path, tuple[str, Path]] = {}


def attribute_tree(hub: Hub, commit: str) -> Path:
    """A folder with the .gitattributes files of `commit`; the same files give the same folder."""
    tree = hub.tree_of(commit)
    last = _LAST.get(hub.path)
    if last is not None and last[1].is_dir() and not _differ(hub, last[0], tree):
        place = last[1]
    else:
        everything = _attribute_files(hub, commit)
        place = _write(hub, [(path, blob) for mode, path, blob in everything if _is_plain(mode, path)])
    _LAST[hub.path] = (tree, place)
    return place


def _differ(hub: Hub, one: str, other: str) -> bool:
    """Whether two trees differ in any attribute file."""
    return one != other and any(
        path.rpartition(b"/")[2] == b".gitattributes" for path, _, _ in hub.differences(one, other)
    )


def _is_plain(mode: bytes, path: bytes) -> bool:
    return mode in _PLAIN_FILE and not {b"", b".", b"..", b".git"} & set(path.split(b"/"))


def _write(hub: Hub, found: list[tuple[bytes, str]]) -> Path:
    key = hashlib.sha256(b"".join(b"%s %s\0" % (blob.encode(), path) for path, blob in found)).hexdigest()
    place = hub.path / "attributes" / key
    if place.is_dir():
        return place
    half = place.with_name(f"{key}.{uuid.uuid4().hex}")
    half.mkdir(parents=True)
    # A folder that holds something is never replaced by a rename while another git is standing in it.
    (half / ".gitattributes").touch()
    for (path, _), content in zip(found, read_blobs(hub, [blob for _, blob in found]), strict=True):
        file = half / os.fsdecode(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_CUSTOM_DRIVER.sub(b"-merge", content))
    try:
        half.rename(place)
    except OSError:
        # Another thread made the same folder first.
        shutil.rmtree(half)
        if not place.is_dir():
            raise
    return place


def _attribute_files(hub: Hub, commit: str) -> list[tuple[bytes, bytes, str]]:
    """Mode, path and id of every attribute file of a commit."""
    raw = fields(
        git(
            "--no-literal-pathspecs", "diff-tree", "-r", "-z", "--raw", "--no-renames", _EMPTY_TREE[len(commit)],
            commit, "--", ATTRIBUTE_FILES, git_dir=hub.path,
        ).stdout
    )  # fmt: skip
    found = []
    for facts, path in zip(raw[::2], raw[1::2], strict=True):
        _, mode, _, blob, _ = facts.lstrip(b":").split(b" ")
        found.append((mode, path, blob.decode()))
    return found
