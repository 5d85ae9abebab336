"""Which files below a folder a program read, found by their times of access.

Every file and folder is marked with a time of access long ago; what has another one afterwards was read. A reader
that is no part of the program only adds to the list.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from legion.system import trees

_OWN = (".git",)
_LONG_AGO = 86_413 * 10**9
"""No time that a build tool gives to its files."""
_HISTORY = (".git/index", ".git/objects/info/alternates")
"""What git opens where a program reads the repository's files or history through it."""
_FICLONE = 0x40049409
"""The Linux call that copies a file without reading it, on file systems that can."""


@dataclass(frozen=True, kw_only=True)
class ReadFiles:
    """What was read, relative to the folder."""

    files: frozenset[str]
    """Read, executed, linked or moved away."""
    used: frozenset[str]
    """Folders whose names were listed, or that held such a file: a new name there would have been seen."""
    unused: frozenset[str]
    """The other folders."""
    kinds: frozenset[str] = frozenset()
    """Endings of the names of files that were not read."""

    def include(self, path: str, *, is_new_or_gone: bool) -> bool:
        """Whether the program read this path, or would have read it had it been there.

        Asking whether a file exists leaves no trace. So a name that is new or gone counts as read unless nothing in
        its folder was, other files with its ending were left alone, and no file of the same name was read anywhere.
        """
        if path in self.files or not is_new_or_gone:
            return path in self.files
        name = PurePosixPath(path)
        if name.suffix not in self.kinds or name.name in self._names:
            return True
        known = (folder for folder in trees.above(path) if folder in self.used or folder in self.unused)
        return next(known, "") not in self.unused

    @functools.cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(PurePosixPath(path).name for path in self.files)


Marks = dict[str, int | None]
"""By path: when a file was marked; None for a folder."""


def mark(folder: Path) -> Marks | None:
    """Mark everything below the folder. None where the file system records no reads."""
    if not are_recorded(folder.parent):
        return None
    folders = {one.path: one.entry.is_dir(follow_symlinks=False) for one in _below(folder)}
    for path in ("", *folders, *_history(folder)):
        place = folder / path
        os.utime(place, ns=(_LONG_AGO, place.lstat().st_mtime_ns), follow_symlinks=False)
    return {"": None, **{path: None if folders[path] else (folder / path).lstat().st_ctime_ns for path in folders}}


def read_since(folder: Path, marked: Marks) -> ReadFiles | None:
    """What was read since `mark` returned these paths; None where it may be anything that the repository holds."""
    if any(_is_touched(folder / path, None) for path in _history(folder)):
        return None
    folders = {path for path, since in marked.items() if since is None}
    touched = {path for path, since in marked.items() if _is_touched(folder / path, since)}
    listed = touched & folders
    files = touched - listed
    used = listed | {_parent(path) for path in files} | {""}
    kinds = {PurePosixPath(path).suffix for path in marked.keys() - folders - files} - {""}
    return ReadFiles(
        files=frozenset(files), used=frozenset(used), unused=frozenset(folders - used), kinds=frozenset(kinds)
    )


def _history(folder: Path) -> list[str]:
    return [path for path in _HISTORY if (folder / path).is_file() and not (folder / ".git").is_symlink()]


def _parent(path: str) -> str:
    return next(trees.above(path), "")


def _below(folder: Path) -> Iterator[trees.Found]:
    return (one for one in trees.walk(folder, skip=_OWN) if one.path not in _OWN)


def _is_touched(path: Path, since: int | None) -> bool:
    """A file whose inode was changed may have been read, too: it was linked, or its time of access put back."""
    try:
        facts = path.lstat()
    except OSError:
        return True
    return facts.st_atime_ns != _LONG_AGO or since not in (None, facts.st_ctime_ns)


def are_recorded(folder: Path) -> bool:
    """Whether the file system of this folder records when a file is read, also by a copy that shares its blocks."""
    return all(_is_recorded(folder, way) for way in (_read, _copy, _clone))


def _is_recorded(folder: Path, way: Callable[[int, int], object]) -> bool:
    with _probe(folder) as file, tempfile.TemporaryFile(dir=folder) as copy, file.open("rb") as original:
        try:
            way(original.fileno(), copy.fileno())
        except OSError:
            # What no program can do here leaves no read without a trace.
            return True
        return file.stat().st_atime_ns != _LONG_AGO


def _read(original: int, _copy: int) -> None:
    os.read(original, 1)


def _copy(original: int, copy: int) -> None:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    os.copy_file_range(original, copy, 1)


def _clone(original: int, copy: int) -> None:
    fcntl.ioctl(copy, _FICLONE, original)


@contextlib.contextmanager
def _probe(folder: Path) -> Iterator[Path]:
    """A marked file in the folder."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"read")
        file.flush()
        path = Path(file.name)
        os.utime(path, ns=(_LONG_AGO, path.stat().st_mtime_ns))
        yield path
