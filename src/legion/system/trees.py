"""Walks, measures and removes folders of any shape: deeper than a path can be, unreadable, or changing meanwhile.

Agents fill these folders, so nothing here recurses, follows a link or fails because of what it finds, also where a
folder becomes a link meanwhile: each one is opened from the open folder that contains it. A folder that cannot be
opened is passed over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from legion.system import process

_DEEPEST = 32_000
"""Characters below which nothing is read: a chain of folders can be made without any limit."""
_MOST_OPEN = 50
_COPY_SECONDS = 900.0
_AT_ONCE = 200
"""Folders that one program is given: their names fit into a command line."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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


class _Waiting(NamedTuple):
    """A folder that is to be read, by the names that lead to it from an open one."""

    handle: int
    names: tuple[str, ...]
    path: str
    depth: int


def walk(
    top: Path,
    *,
    at: str = "",
    skip: Container[str] = (),
    unopened: Callable[[str, OSError], None] | None = None,
    deepest: int = _DEEPEST,
) -> Generator[Found, None, None]:
    """Everything below a folder, or below the folder `at` in it, in any order, but nothing in the folders of `skip`.

    `unopened` is called for each folder that cannot be read, or whose path has more than `deepest` characters.
    """
    waiting: list[_Waiting | int] = []
    try:
        try:
            handle = os.open(top, _FOLDER)
        except OSError as trouble:
            if unopened is not None:
                unopened("", trouble)
            return
        waiting += [handle, _Waiting(handle, PurePosixPath(at).parts, "", 0)]
        while waiting:
            following = waiting.pop()
            if isinstance(following, int):
                os.close(following)
                continue
            try:
                yield from _read(following, waiting, skip, deepest)
            except OSError as trouble:
                if unopened is not None:
                    unopened(following.path, trouble)
    finally:
        for left in waiting:
            if isinstance(left, int):
                os.close(left)


def _read(
    folder: _Waiting, waiting: list[_Waiting | int], skip: Container[str], deepest: int
) -> Generator[Found, None, None]:
    """The entries of one folder; its folders wait. It stays open for them, unless many are open on the way to it."""
    if len(folder.path) > deepest:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    handle = open_below(folder.handle, folder.names)
    stays = folder.depth < _MOST_OPEN or folder.depth % _MOST_OPEN == 0
    if stays:
        waiting.append(handle)
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                below = f"{folder.path}/{entry.name}" if folder.path else entry.name
                if entry.is_dir(follow_symlinks=False) and below not in skip:
                    start = (handle, (entry.name,)) if stays else (folder.handle, (*folder.names, entry.name))
                    waiting.append(_Waiting(*start, below, folder.depth + 1))
                yield Found(below, entry)
    finally:
        if not stays:
            os.close(handle)


def open_below(folder: int, names: Sequence[str]) -> int:
    """A new handle of the folder that these names lead to from an open one, without following any link."""
    handle = os.open(names[0] if names else ".", _FOLDER, dir_fd=folder)
    for name in names[1:]:
        try:
            below = os.open(name, _FOLDER, dir_fd=handle)
        finally:
            os.close(handle)
        handle = below
    return handle


def above(path: str) -> Iterator[str]:
    """The folders on the way to a path, the nearest first, without the top."""
    while path := path.rpartition("/")[0]:
        yield path


def names(top: Path, path: str) -> tuple[str, ...]:
    """The names in a folder below another one; none where a link or anything else is in its place."""
    try:
        with _opened(top, PurePosixPath(path).parts) as folder, os.scandir(folder) as entries:
            return tuple(entry.name for entry in entries)
    except OSError:
        return ()


def facts(top: Path, path: str) -> os.stat_result | None:
    """Of what is at a path below a folder; None where nothing is, or a link leads there."""
    parts = PurePosixPath(path).parts
    try:
        with _opened(top, parts[:-1]) as folder:
            return os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def remove_pipe(top: Path, path: str) -> None:
    """Remove the named pipe at a path below a folder, without following any link. Anything else stays."""
    parts = PurePosixPath(path).parts
    with contextlib.suppress(OSError), _opened(top, parts[:-1]) as folder:
        if stat.S_ISFIFO(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(parts[-1], dir_fd=folder)


@contextlib.contextmanager
def _opened(top: Path, below: Sequence[str]) -> Iterator[int]:
    above = os.open(top, _FOLDER)
    try:
        handle = open_below(above, below)
    finally:
        os.close(above)
    try:
        yield handle
    finally:
        os.close(handle)


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


def copy(paths: Sequence[Path], folder: Path) -> bool:
    """Copy files and folders with all they hold into a folder, without following links, in shared blocks where the file
    system can. Returns whether everything could be read."""
    shared = ("--reflink=auto",) if sys.platform == "linux" else ()
    return all(
        process.run(("cp", "-a", *shared, "--", *some, folder), timeout=_COPY_SECONDS).code == 0
        for some in _batches(paths)
    )


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
