"""The content of large files that Git LFS keeps outside of commits: copied between the person's store and the hub's.

Nothing but the content that an id stands for ever appears under it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from legion.git.hub.attribute_files import attribute_texts, person_settings
from legion.git.hub.writable import WritableRepository
from legion.system import safe_files

LFS = "lfs"
"""The name of the filter, and of the folder in a repository."""
_NAMED = f"filter={LFS}"
_POINTER = re.compile(rb"version https://git-lfs[^\n]*\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\n")
_LARGEST_POINTER = 1024
_ID = re.compile("[0-9a-f]{64}")


def store_of(common_dir: Path) -> Path:
    """Where the person's LFS keeps the content of files."""
    return common_dir / person_settings(common_dir, r"^lfs\.storage$").get("lfs.storage", LFS)


def admit(folder: Path, store: Path) -> None:
    """Copy what a program of LFS wrote below the folder, as far as it is what its name says."""
    for file in (folder / "objects").glob("??/??/*"):
        place = file.relative_to(folder)
        if _ID.fullmatch(file.name) and not (store / place).exists():
            _copy_checked(safe_files.opened(folder, str(place)), store / place, file.name)


def hand_over_lfs(hub: WritableRepository, common_dir: Path, blobs: Iterable[str]) -> None:
    """Copy the content of LFS files that these blobs point to into the person's repository, where theirs lacks it."""
    ours, theirs = hub.path / LFS, store_of(common_dir)
    if not ours.is_dir():
        return
    for blob in blobs:
        if id := _pointer(hub, blob):
            place = Path("objects", id[:2], id[2:4], id)
            if not (theirs / place).exists():
                _copy_checked(safe_files.opened(ours, str(place)), theirs / place, id)


def lfs_files(hub: WritableRepository, base: str, head: str) -> tuple[str, ...]:
    """Files that a change adds or replaces by a pointer to content that LFS keeps."""
    if _NAMED not in "".join(attribute_texts(hub, head)):
        return ()
    changed = ((file.path, file.content.split(" ")[-1]) for file in hub.changed_files(base, head) if file.content)
    return tuple(path for path, blob in changed if _pointer(hub, blob))


def _pointer(hub: WritableRepository, blob: str) -> str:
    """The id of the content; empty for another file, and for one that is gone."""
    if not blob.strip("0") or hub.size_of(blob) > _LARGEST_POINTER:
        return ""
    found = _POINTER.match(hub.content(blob))
    return "" if found is None else found[1].decode()


def _copy_checked(source: BinaryIO | None, goal: Path, id: str) -> None:
    """Nothing but the content that the id stands for appears under it."""
    if source is None:
        return
    goal.parent.mkdir(parents=True, exist_ok=True)
    half = goal.with_name(f".{goal.name}.{uuid.uuid4().hex}")
    try:
        with source, half.open("xb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        with half.open("rb") as copied:
            if hashlib.file_digest(copied, "sha256").hexdigest() == id:
                half.rename(goal)
    finally:
        half.unlink(missing_ok=True)
