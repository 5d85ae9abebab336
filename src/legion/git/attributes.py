"""Attributes for merging, taken from a commit and not from any checkout.

git reads .gitattributes from a work tree, so a folder that holds nothing else is made from the commit. Merge drivers
with a program behind them become "no automatic merge": a file that both sides changed is then a conflict.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from pathlib import Path

from legion.git.command import fields, git
from legion.git.hub import Hub
from legion.git.inspect import ATTRIBUTE_FILES
from legion.git.objects import read_blobs

_PLAIN_FILE = (b"100644", b"100755")
_CUSTOM_DRIVER = re.compile(rb"(?<=[ \t])merge=(?!(?:union|binary|text)(?:\s|$))\S+")


def attribute_tree(hub: Hub, commit: str) -> Path:
    """A folder with the .gitattributes files of `commit`; the same files give the same folder."""
    found = _attribute_files(hub, commit)
    key = hashlib.sha256(b"".join(b"%s %s\0" % (blob.encode(), path) for path, blob in found)).hexdigest()
    place = hub.path / "attributes" / key
    if place.is_dir():
        return place
    half = place.with_name(f"{key}.{os.getpid()}.{time.monotonic_ns()}")
    half.mkdir(parents=True)
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


def _attribute_files(hub: Hub, commit: str) -> list[tuple[bytes, str]]:
    nothing = git("hash-object", "-t", "tree", "--stdin", git_dir=hub.path).text.strip()
    raw = fields(
        git(
            "--no-literal-pathspecs", "diff-tree", "-r", "-z", "--raw", "--no-renames", nothing, commit,
            "--", ATTRIBUTE_FILES, git_dir=hub.path,
        ).stdout
    )  # fmt: skip
    found = []
    for facts, path in zip(raw[::2], raw[1::2], strict=True):
        _, mode, _, blob, _ = facts.lstrip(b":").split(b" ")
        if mode in _PLAIN_FILE and not {b"", b".", b"..", b".git"} & set(path.split(b"/")):
            found.append((path, blob.decode()))
    return found
