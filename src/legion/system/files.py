"""Crash-safe file operations: atomic writes, locks, and a trash folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from legion.system import trees

_OTHERS = 0o077


class AlreadyLocked(Exception):
    """Another process holds this lock."""


def write_atomic(path: Path, content: bytes | str, *, mode: int = 0o600, durable: bool = True) -> None:
    """Replace `path` so that a reader sees either the old content or the new.

    After a power cut too, unless `durable` is false: then the file may be empty, and its readers must not mind.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise


def end(path: Path, most: int) -> bytes:
    """The last bytes of a file; none of one that is not there."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read(most)
    except FileNotFoundError:
        return b""


def private_folder(path: Path) -> None:
    """Make a folder of ours, or close one that is there, to all other users of this machine."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    facts = path.stat()
    if facts.st_uid == os.geteuid() and facts.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(facts.st_mode) & ~_OTHERS)


@dataclass
class Lock:
    """A held flock. The system frees it when the process ends, in whatever way."""

    path: Path
    handle: int

    def release(self) -> None:
        os.close(self.handle)


def lock(path: Path, *, patience: float = 0.0) -> Lock:
    """Take the lock within `patience` seconds, else raise AlreadyLocked."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(handle)
                raise AlreadyLocked(str(path)) from None
            time.sleep(0.02)
        else:
            return Lock(path, handle)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock. The answer may be out of date when it is used."""
    try:
        lock(path).release()
    except FileNotFoundError:
        return False
    except AlreadyLocked:
        return True
    return False


@contextlib.contextmanager
def waiting_lock(path: Path) -> Iterator[None]:
    """Wait for the lock, and hold it for the block."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def move_to_trash(path: Path, trash: Path) -> Path:
    """Move into the trash on the same file system: the only way to remove what an agent may have written."""
    trash.mkdir(parents=True, exist_ok=True)
    place = trash / f"{time.time_ns()}-{path.name}"
    try:
        path.rename(place)
    except PermissionError:
        # A folder that was made read-only cannot be moved.
        path.chmod(0o700, follow_symlinks=not path.is_symlink())
        path.rename(place)
    return place


def empty_trash(trash: Path, *, older_than: float, keep_bytes: int, now: float, sizes: dict[str, int]) -> list[Path]:
    """Delete what is too old, then the oldest until the rest fits. Returns what was deleted.

    Content of the trash does not change, so each tree is measured once if the caller passes the same `sizes` again.
    """
    discarded = {place: place.name.partition("-")[0] for place in trash.iterdir()} if trash.is_dir() else {}
    places = sorted((place for place, moment in discarded.items() if moment.isdecimal()), key=lambda place: place.name)
    unknown = [place for place in places if place.name not in sizes]
    sizes.update(zip((place.name for place in unknown), trees.sizes(unknown), strict=True))
    total = sum(sizes[place.name] for place in places)
    gone = []
    for place in places:
        if now - int(discarded[place]) / 1e9 > older_than or total > keep_bytes:
            total -= sizes.pop(place.name)
            gone.append(place)
    trees.remove_all(gone)
    return gone
