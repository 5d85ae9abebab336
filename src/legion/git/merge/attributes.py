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

from legion.git.hub.attribute_files import attribute_files
from legion.git.hub.objects import read_blobs
from legion.git.hub.repository import Hub

_CUSTOM_DRIVER = re.compile(rb"(?<=[ \t])merge=(?!(?:union|binary|text)(?:\s|$))\S+")


def attribute_tree(hub: Hub, commit: str) -> Path:
    """A folder with the .gitattributes files of `commit`; the same files give the same folder."""
    return _write(hub, sorted(attribute_files(hub, commit).items()))


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
