"""Reads objects of a repository of ours through one `git cat-file` that stays alive.

An answer takes some 50 microseconds instead of the milliseconds of a process. Objects and refs that other processes
write are seen at once, also after a repack. A reader that died is started again.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections import OrderedDict
from pathlib import Path

from legion.git.core.command import environment, git_program
from legion.git.core.errors import FolderGone, GitError, GitMissing

_MOST_READERS = 16
_TYPES = (b"commit", b"tree", b"blob", b"tag")


class ObjectReader:
    """One process, used by one thread at a time."""

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def identify(self, name: bytes) -> bytes | None:
        """The id of what a name without blanks stands for; None where there is no such object, or several."""
        found = self._ask(b"info", name)
        return found[0] if found is not None else None

    def size(self, name: bytes) -> int | None:
        """The bytes of an object's content; None where there is none."""
        found = self._ask(b"info", name)
        return int(found[1]) if found is not None else None

    def read(self, name: bytes) -> bytes | None:
        """The content of an object; None where there is none."""
        found = self._ask(b"contents", name)
        return found[1] if found is not None else None

    def close(self) -> None:
        with self._lock:
            self._end()

    def _ask(self, command: bytes, name: bytes) -> tuple[bytes, bytes] | None:
        with self._lock:
            try:
                return self._exchange(command, name)
            except (OSError, EOFError):
                self._end()
            try:
                return self._exchange(command, name)
            except (OSError, EOFError) as broken:
                self._end()
                raise GitError(("git", "cat-file"), f"it ended without an answer ({broken})") from broken

    def _exchange(self, command: bytes, name: bytes) -> tuple[bytes, bytes] | None:
        process = self._living()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"%s %s\n" % (command, name))
        process.stdin.flush()
        header = process.stdout.readline()
        if not header.endswith(b"\n"):
            raise EOFError("no header")
        parts = header[:-1].split(b" ")
        if len(parts) != 3 or parts[1] not in _TYPES:
            return None
        if command == b"info":
            return parts[0], parts[2]
        size = int(parts[2])
        content = process.stdout.read(size + 1)
        if len(content) != size + 1:
            raise EOFError("half a content")
        return parts[0], content[:-1]

    def _living(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    (git_program(), "cat-file", "--batch-command"),
                    cwd=self._git_dir,
                    env={**environment({}), "GIT_DIR": os.fspath(self._git_dir)},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except FileNotFoundError:
                if not self._git_dir.exists():
                    raise FolderGone(self._git_dir) from None
                raise GitMissing from None
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:
                # What was written and not yet sent is for a process that is gone.
                continue
        process.wait()


class _Readers:
    """The readers of this process, by repository. The one that was not used for longest ends when there are many."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[Path, int], ObjectReader] = OrderedDict()

    def of(self, git_dir: Path) -> ObjectReader:
        # Another folder at the same place is another repository.
        try:
            key = (git_dir, git_dir.stat().st_ino)
        except (FileNotFoundError, NotADirectoryError):
            raise FolderGone(git_dir) from None
        dropped = None
        with self._lock:
            reader = self._open.pop(key, None) or ObjectReader(git_dir)
            self._open[key] = reader
            if len(self._open) > _MOST_READERS:
                _, dropped = self._open.popitem(last=False)
        if dropped is not None:
            dropped.close()
        return reader

    def forget(self) -> None:
        """In a forked child: the pipes belong to the parent's conversation."""
        self._lock = threading.Lock()
        self._open = OrderedDict()


_READERS = _Readers()
os.register_at_fork(after_in_child=_READERS.forget)


def reader(git_dir: Path) -> ObjectReader:
    """The reader of this repository, which all threads share."""
    return _READERS.of(git_dir)
