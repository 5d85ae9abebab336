"""One folder per test session, shared by its workers, and a lock that is held as long as the session lives.

The keeper of the session's database waits for that lock: it comes free however the session ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_VARIABLE = "LEGION_TEST_SESSION"
_LIVING = "living"


class Session:
    """What the first process of a session holds."""

    def __init__(self) -> None:
        # Not below pytest's own folder: a server that runs as another user must be able to reach it.
        self.folder = Path(tempfile.mkdtemp(prefix="legion-tests-"))
        self.folder.chmod(0o755)
        self._life = take(self.folder / "life")
        os.mkfifo(self.folder / _LIVING, 0o600)
        self._living = os.open(self.folder / _LIVING, os.O_RDWR | os.O_CLOEXEC)
        os.environ[_VARIABLE] = str(self.folder)

    def close(self) -> None:
        """Let the keeper of the database go, wait for its end and take the folder away."""
        del os.environ[_VARIABLE]
        keeper = os.open(self.folder / "keeper", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.close(self._living)
        os.close(self._life)
        fcntl.flock(keeper, fcntl.LOCK_EX)
        os.close(keeper)
        shutil.rmtree(self.folder, ignore_errors=True)


def under_test() -> bool:
    """Whether this process belongs to a test session."""
    return _VARIABLE in os.environ


def session_folder() -> Path:
    return Path(os.environ[_VARIABLE])


def open_life() -> int:
    """A handle that becomes readable when the session ends, however it ends."""
    return os.open(session_folder() / _LIVING, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def take(lock: Path) -> int:
    """Wait for the lock; it is free again when the returned handle is closed."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle
