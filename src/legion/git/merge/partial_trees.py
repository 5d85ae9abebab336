"""Trees that were never checked out: a commit without one hunk of its change, or with some files of another commit."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from legion.git.core.command import git
from legion.git.hub.repository import Hub


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
            entries = git("ls-tree", "-r", "-z", "--end-of-options", source, "--", *paths, git_dir=hub.path).stdout
            git("update-index", "-z", "--index-info", git_dir=hub.path, index=index, stdin=entries)
        return git("write-tree", git_dir=hub.path, index=index).text.strip()


@contextlib.contextmanager
def _index(hub: Hub) -> Iterator[Path]:
    place = hub.path / "merging" / f"{uuid.uuid4().hex}.index"
    place.parent.mkdir(exist_ok=True)
    try:
        yield place
    finally:
        place.unlink(missing_ok=True)
