"""Walks, measures and removes folders of any shape: deeper than a path can be, unreadable, or changing meanwhile.

Agents fill these folders, so nothing here recurses, follows a link or fails because of what it finds. A folder that
cannot be opened is passed over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Container, Generator, Sequence
from pathlib import Path
from typing import NamedTuple

from legion.system import process

_LONGEST = 3000
"""Characters of a path; one that is longer continues from an open folder, since the kernel takes 4095 bytes."""
_DEEPEST = 32_000
"""Characters below which nothing is read: a chain of folders can be made without any limit."""
_MOST_OPEN = 50
_AT_ONCE = 200
"""Folders that one program is given: their names fit into a command line."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FOLDERS = Path("/proc/self/fd")


class Found(NamedTuple):
    """One entry below the top of a walk."""

    path: str
    """From the top of the walk."""
    entry: os.DirEntry[str]
    """It can be asked until the walk continues."""

    @property
    def facts(self) -> os.stat_result | None:
        """None where it is gone."""
        try:
            return self.entry.stat(follow_symlinks=False)
        except OSError:
            return None


def walk(
    top: Path,
    *,
    skip: Container[str] = (),
    unopened: Callable[[str, OSError], None] | None = None,
    deepest: int = _DEEPEST,
) -> Generator[Found, None, None]:
    """Everything below a folder, in any order, but nothing in the folders of `skip`.

    `unopened` is called for each folder that cannot be read, or whose path has more than `deepest` characters.
    """
    waiting: list[tuple[str, str] | int] = [(os.fspath(top), "")]
    try:
        while waiting:
            following = waiting.pop()
            if isinstance(following, int):
                os.close(following)
                continue
            place, path = following
            try:
                place = _shortened(place, path, waiting, deepest)
                with os.scandir(place) as entries:
                    for entry in entries:
                        below = f"{path}/{entry.name}" if path else entry.name
                        if entry.is_dir(follow_symlinks=False) and below not in skip:
                            waiting.append((entry.path, below))
                        yield Found(below, entry)
            except OSError as trouble:
                if unopened is not None:
                    unopened(path, trouble)
    finally:
        for handle in waiting:
            if isinstance(handle, int):
                os.close(handle)


def _shortened(place: str, path: str, waiting: list[tuple[str, str] | int], deepest: int) -> str:
    """The same folder under a path that the kernel takes. What it opens is closed after everything below it."""
    if len(path) > deepest:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    if len(place) <= _LONGEST or not _OPEN_FOLDERS.is_dir():
        return place
    handle = os.open(place, _FOLDER)
    waiting.append(handle)
    return f"{_OPEN_FOLDERS}/{handle}"


def size(path: Path) -> int:
    """Bytes on disk of a file or folder; what vanishes meanwhile counts as 0."""
    try:
        top = path.lstat()
    except OSError:
        return 0
    below = walk(path) if stat.S_ISDIR(top.st_mode) else ()
    return (top.st_blocks + sum(facts.st_blocks for found in below if (facts := found.facts) is not None)) * 512


def sizes(paths: Sequence[Path]) -> list[int]:
    """As `size`, for many folders. A program measures them: its calls do not wait for the threads of this process."""
    found: dict[str, int] = {}
    for some in _batches(paths):
        for line in _output("du", "-sk", "--", *some).splitlines():
            amount, _, path = line.partition("\t")
            if amount.isdecimal():
                found[path] = int(amount) * 1024
    return [found[str(path)] if str(path) in found else size(path) for path in paths]


def remove_all(paths: Sequence[Path]) -> None:
    """As `remove`, for many folders. A program deletes them; what it cannot delete is left to `remove`."""
    for some in _batches(paths):
        _output("rm", "-rf", "--", *some)
    for path in paths:
        remove(path)


def _batches(paths: Sequence[Path]) -> list[list[str]]:
    return [[str(path) for path in paths[first : first + _AT_ONCE]] for first in range(0, len(paths), _AT_ONCE)]


def _output(*argv: str) -> str:
    """What the program prints on its way, also where it fails in the end; nothing where it is missing."""
    try:
        return process.run(argv).text
    except process.ProgramMissing:
        return ""


def remove(path: Path) -> None:
    """Delete a file, a link or a folder with all it holds, also what is read-only. What cannot be deleted stays."""
    try:
        path.unlink(missing_ok=True)
        return
    except OSError:
        if path.is_symlink() or not path.is_dir():
            return
    with contextlib.suppress(OSError):
        path.chmod(0o700)
        _empty(os.open(path, _FOLDER))
        path.rmdir()


def _empty(top: int) -> None:
    """Delete all that an open folder holds, and close it.

    At most `_MOST_OPEN` folders are open at once: what is deeper moves up to the top first, so no path gets long.
    """
    opened = [_OpenFolder(top, "", _folders_left(top))]
    moved = 0
    while opened:
        folder = opened[-1]
        if not folder.left:
            os.close(opened.pop().handle)
            if opened:
                with contextlib.suppress(OSError):
                    os.rmdir(folder.name, dir_fd=opened[-1].handle)
            continue
        name = folder.left.pop()
        with contextlib.suppress(OSError):
            _make_writable(folder.handle, name)
            if len(opened) < _MOST_OPEN:
                handle = os.open(name, _FOLDER, dir_fd=folder.handle)
                opened.append(_OpenFolder(handle, name, _folders_left(handle)))
            else:
                moved += 1
                above = f".{os.getpid()}-{moved}"
                os.rename(name, above, src_dir_fd=folder.handle, dst_dir_fd=top)
                opened[0].left.append(above)


class _OpenFolder(NamedTuple):
    handle: int
    name: str
    left: list[str]
    """Its folders that are not removed yet."""


def _folders_left(folder: int) -> list[str]:
    """Delete the files of an open folder, and return the names of its folders."""
    folders = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.name, dir_fd=folder)
    return folders


def _make_writable(parent: int, name: str) -> None:
    """A folder without write permission cannot be emptied or moved, even by its owner."""
    facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, 0o700, dir_fd=parent)
