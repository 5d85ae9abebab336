"""Trees that were never checked out: a commit without one hunk of its change, with some files of another commit, or
with other contents.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from legion.git.core.command import git
from legion.git.hub.objects import read_blobs, store_object, tree_entries
from legion.git.hub.repository import Hub

_FILES = ("100644", "100755")
_LINK = "120000"


def without(hub: Hub, commit: str, patch: str) -> str | None:
    """The tree of `commit` with the patch taken back; None where git cannot take it back."""
    with _index(hub) as index:
        git("read-tree", commit, git_dir=hub.path, index=index)
        words = ("apply", "--cached", "--reverse", "--unidiff-zero", "--whitespace=nowarn", "-")
        done = git(*words, git_dir=hub.path, index=index, stdin=patch.encode(), accept=(0, 1, 128))
        return git("write-tree", git_dir=hub.path, index=index).text.strip() if done.code == 0 else None


def with_files(hub: Hub, base: str, source: str, paths: Sequence[str]) -> str:
    """The tree of `base` with these files as they are in `source`."""
    with _index(hub) as index:
        git("read-tree", base, git_dir=hub.path, index=index)
        if paths:
            entries = git("ls-tree", "-r", "-z", "--end-of-options", source, *paths, git_dir=hub.path).stdout
            git("update-index", "-z", "--index-info", git_dir=hub.path, index=index, stdin=entries)
        return git("write-tree", git_dir=hub.path, index=index).text.strip()


def with_contents(hub: Hub, commit: str, contents: Mapping[str, bytes]) -> str:
    """The tree of `commit` with other contents of these files. Each keeps its mode."""
    modes = {os.fsdecode(path): mode for mode, _, path in tree_entries(_list(hub, commit)) if mode in _FILES}
    # Nothing refers to them, so nothing is lost with them.
    new = {
        path: store_object(hub.objects, b"blob", content, digits=len(commit), durable=False)
        for path, content in contents.items()
    }
    lines = (f"{modes[path]} {id}\t".encode() + os.fsencode(path) for path, id in new.items())
    entries = b"".join(line + b"\0" for line in lines)
    with _index(hub) as index:
        git("read-tree", commit, git_dir=hub.path, index=index)
        git("update-index", "-z", "--index-info", git_dir=hub.path, index=index, stdin=entries)
        return git("write-tree", git_dir=hub.path, index=index).text.strip()


def tracked(hub: Hub, commit: str) -> dict[str, str]:
    """The paths of all plain files of a commit, and the ids of their contents."""
    return {os.fsdecode(path): id for mode, id, path in tree_entries(_list(hub, commit)) if mode in _FILES}


def links(hub: Hub, commit: str) -> dict[str, str]:
    """The links of a commit, and where each leads."""
    found = [(os.fsdecode(path), id) for mode, id, path in tree_entries(_list(hub, commit)) if mode == _LINK]
    contents = read_blobs(hub, [id for _, id in found])
    return {path: os.fsdecode(content) for (path, _), content in zip(found, contents, strict=True)}


def _list(hub: Hub, commit: str) -> bytes:
    return git("ls-tree", "-r", "-z", "--end-of-options", commit, git_dir=hub.path).stdout


@contextlib.contextmanager
def _index(hub: Hub) -> Iterator[Path]:
    place = hub.path / "merging" / f"{uuid.uuid4().hex}.index"
    place.parent.mkdir(exist_ok=True)
    try:
        yield place
    finally:
        place.unlink(missing_ok=True)
