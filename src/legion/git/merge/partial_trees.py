"""Trees that were never checked out: a commit without one hunk of its change, with some files of another commit, or
with some files empty.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from legion.git.core.command import git
from legion.git.hub.objects import tree_entries
from legion.git.hub.repository import Hub

_FILES = ("100644", "100755")


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


def emptied(hub: Hub, commit: str, paths: Sequence[str]) -> str:
    """The tree of `commit` with these files empty. Each keeps its mode."""
    empty = git("hash-object", "-w", "--stdin", git_dir=hub.path).text.strip()
    wanted = {os.fsencode(path) for path in paths}
    files = [(mode, path) for mode, _, path in tree_entries(_list(hub, commit)) if path in wanted and mode in _FILES]
    entries = b"".join(b"%s %s\t%s\0" % (mode.encode(), empty.encode(), path) for mode, path in files)
    with _index(hub) as index:
        git("read-tree", commit, git_dir=hub.path, index=index)
        git("update-index", "-z", "--index-info", git_dir=hub.path, index=index, stdin=entries)
        return git("write-tree", git_dir=hub.path, index=index).text.strip()


def tracked(hub: Hub, commit: str) -> tuple[str, ...]:
    """The paths of all plain files of a commit."""
    return tuple(os.fsdecode(path) for mode, _, path in tree_entries(_list(hub, commit)) if mode in _FILES)


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
