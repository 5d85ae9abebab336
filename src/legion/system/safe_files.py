"""Opens a file by a name that came with a request or from an agent: only below the given folder, never through a link.

The name is walked part by part from the folder's descriptor, so a folder that is swapped for a link meanwhile opens
nothing. An absolute name, `..` and NUL are refused.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20


def read(root: Path, path: str, *, most: int | None = None) -> bytes | None:
    """The content of a plain file; None if there is none, or a link or anything else in its place.

    Of a longer file only the first `most` bytes: an agent can make one of any size that takes no room on the disk.
    """
    file = opened(root, path)
    if file is None:
        return None
    with file:
        return file.read(-1 if most is None else most)


def digest(root: Path, path: str, *, most: int) -> bytes:
    """Of the size and the first `most` bytes of a plain file; empty where `read` finds none."""
    file = opened(root, path)
    if file is None:
        return b""
    with file:
        found = hashlib.sha256(str(os.fstat(file.fileno()).st_size).encode() + b"\0")
        while most > 0 and (piece := file.read(min(_PIECE, most))):
            found.update(piece)
            most -= len(piece)
    return found.digest()


def opened(root: Path, path: str) -> BinaryIO | None:
    """A plain file below the folder, open to read; None if there is none, or a link or anything else in its place."""
    try:
        with _parent(root, path, make=False) as folder:
            handle = os.open(
                PurePosixPath(path).name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
            )
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return os.fdopen(handle, "rb")


def behind(root: Path, path: str) -> str:
    """The target of a link that stays inside, by its text alone; the path itself for anything else."""
    try:
        with _parent(root, path, make=False) as folder:
            to = os.readlink(PurePosixPath(path).name, dir_fd=folder)
    except OSError:
        return path
    place = os.path.normpath(PurePosixPath(path).parent / to)
    return path if place.startswith(("/", "..")) else place


def write(root: Path, path: str, content: bytes, *, keep_mode: bool = False) -> None:
    """Write a file that only its owner can read, replacing any other. Raises OSError.

    With `keep_mode` it has the mode of the file that it replaces, or the usual one.
    """
    name = PurePosixPath(path).name
    half = f".{name}.{os.getpid()}.half"
    with _parent(root, path, make=True) as folder:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(half, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(half, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
            if keep_mode:
                os.fchmod(file.fileno(), _mode(folder, name))
        try:
            os.replace(half, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(half, dir_fd=folder)
            raise


def _mode(folder: int, name: str) -> int:
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            return stat.S_IMODE(mode) & 0o777
    return 0o644


@contextlib.contextmanager
def _parent(root: Path, path: str, *, make: bool) -> Iterator[int]:
    """The open folder that contains the path. Raises OSError for a path that can lead out of the root."""
    *folders, name = PurePosixPath(path).parts or ("..",)
    if path.startswith("/") or ".." in (*folders, name) or "\0" in path:
        raise OSError(errno.EINVAL, "not a path below a folder", path)
    handle = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for part in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            below = os.open(part, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def text_behind(root: Path, name: str) -> str:
    """The text of a file of the repository, also behind links that stay in it; empty where there is none."""
    return (read(root, behind(root, name)) or b"").decode("utf-8", "replace")
