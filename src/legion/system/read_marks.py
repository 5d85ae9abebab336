"""Which files below a folder a program read, found by their times of access.

Every file and folder is marked with a time of access long ago; what has another one afterwards was read. A reader
that is no part of the program only adds to the list.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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

    def include(self, path: str, *, is_new_or_gone: bool) -> bool:
        """Whether the program read this path, or would have read it had it been there."""
        if path in self.files or not is_new_or_gone:
            return path in self.files
        while path:
            path = path.rpartition("/")[0]
            if path in self.unused:
                return False
            if path in self.used:
                return True
        return True


def mark(folder: Path) -> dict[str, bool] | None:
    """Mark everything below the folder. Returns the paths, and which of them are folders; None where the file system
    records no reads."""
    if not _are_recorded(folder):
        return None
    found = {"": True, **{one.path: one.entry.is_dir(follow_symlinks=False) for one in _below(folder)}}
    for path in (*found, *_history(folder)):
        place = folder / path
        os.utime(place, ns=(_LONG_AGO, place.lstat().st_mtime_ns), follow_symlinks=False)
    return found


def read_since(folder: Path, marked: dict[str, bool]) -> ReadFiles | None:
    """What was read since `mark` returned these paths; None where it may be anything that the repository holds."""
    if any(_is_touched(folder / path, is_folder=True) for path in _history(folder)):
        return None
    touched = {path for path in marked if _is_touched(folder / path, is_folder=marked[path])}
    listed = {path for path in touched if marked[path]}
    files = touched - listed
    if not _are_clones_recorded(folder):
        files |= {path for path, is_folder in marked.items() if not is_folder and _parent(path) in listed}
    used = listed | {_parent(path) for path in files} | {""}
    folders = {path for path, is_folder in marked.items() if is_folder}
    return ReadFiles(files=frozenset(files), used=frozenset(used), unused=frozenset(folders - used))


def _history(folder: Path) -> list[str]:
    return [path for path in _HISTORY if (folder / path).is_file() and not (folder / ".git").is_symlink()]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _below(folder: Path) -> Iterator[trees.Found]:
    return (one for one in trees.walk(folder, skip=_OWN) if one.path not in _OWN)


def _is_touched(path: Path, *, is_folder: bool) -> bool:
    try:
        facts = path.lstat()
    except OSError:
        return True
    return facts.st_atime_ns != _LONG_AGO or (not is_folder and facts.st_nlink > 1)


def _are_recorded(folder: Path) -> bool:
    with _probe(folder) as file:
        file.read_bytes()
        return file.stat().st_atime_ns != _LONG_AGO


def _are_clones_recorded(folder: Path) -> bool:
    with _probe(folder) as file, tempfile.TemporaryFile(dir=folder.parent) as copy, file.open("rb") as original:
        try:
            fcntl.ioctl(copy, _FICLONE, original.fileno())
        except OSError:
            return True
        return file.stat().st_atime_ns != _LONG_AGO


@contextlib.contextmanager
def _probe(folder: Path) -> Iterator[Path]:
    """A marked file on the same file system."""
    with tempfile.NamedTemporaryFile(dir=folder.parent) as file:
        file.write(b"read")
        file.flush()
        path = Path(file.name)
        os.utime(path, ns=(_LONG_AGO, path.stat().st_mtime_ns))
        yield path
