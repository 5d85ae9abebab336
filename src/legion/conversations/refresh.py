"""Keeps the index up to date on request: a little is read at once, much in a process of its own.

Reading gigabytes in the daemon would slow down everything else in it. A lock lets one process write at a time.
"""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from legion.conversations.catch_up import backlog, catch_up
from legion.conversations.index import Index, IndexProgress
from legion.conversations.places import ConversationPlaces
from legion.system import files

INDEX = "conversations.db"
AT_ONCE = 4 << 20
"""Bytes that are read before an answer."""
_POLL = 0.05
_LATER = 0.3
_LONG_LOOK = 0.03
"""Seconds of CPU that a look at all files may take before an answer in a hurry no longer waits for it."""


class Refresher:
    """The daemon's side. Safe to call from many threads."""

    def __init__(self, folder: Path, places: Callable[[], ConversationPlaces], *, at_once: int = AT_ONCE) -> None:
        self.index = folder / INDEX
        self._lock_file = folder / f"{INDEX}.lock"
        self._places = places
        self._at_once = at_once
        self._lock = threading.Lock()
        self._look_seconds = 0.0
        self._later: threading.Timer | None = None
        self._trouble: Exception | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def refresh(self, wait: float = 0.0, *, hurry: bool = False) -> IndexProgress:
        """Read what is new. Where that is much, start reading it, and wait for at most so many seconds.

        In a `hurry` many files are looked through behind the caller's back: the next call then knows what changed.
        """
        deadline = time.monotonic() + wait
        behind = hurry and self._look_seconds > _LONG_LOOK
        if not behind:
            self._look()
        else:
            self._look_later()
        if not behind:
            if self._trouble is not None:
                raise self._trouble
            while self._reads() and time.monotonic() < deadline:
                time.sleep(_POLL)
        with contextlib.closing(Index(self.index)) as index:
            return index.progress()

    def _look_later(self) -> None:
        """After the answer: both would want the interpreter at once."""
        if not self._lock.locked() and (self._later is None or not self._later.is_alive()):
            self._later = threading.Timer(_LATER, self._look)
            self._later.daemon = True
            self._later.start()

    def _look(self) -> None:
        """One thread at a time."""
        with self._lock:
            began = time.thread_time()
            try:
                self._trouble = None
                if not self._reads():
                    self._read_or_start()
            except (OSError, sqlite3.Error) as trouble:
                self._trouble = trouble
            self._look_seconds = time.thread_time() - began

    @property
    def reading(self) -> bool:
        """Whether a process reads now."""
        return self._reads()

    def close(self) -> None:
        """End the process; the next one reads on from where it was."""
        if self._later is not None:
            self._later.cancel()
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _reads(self) -> bool:
        process = self._process
        if process is None:
            return False
        if process.poll() is None:
            return True
        if process.stdin is not None:
            process.stdin.close()
        self._process = None
        return False

    def _read_or_start(self) -> None:
        try:
            lock = files.lock(self._lock_file)
        except files.AlreadyLocked:
            return
        places = self._places()
        try:
            with contextlib.closing(Index(self.index)) as index:
                work = backlog(index, places)
                if work.bytes <= self._at_once:
                    if work.changed or work.gone or not index.progress().finished_at:
                        catch_up(index, places, work)
                    return
                with index.writing():
                    index.note_progress(files=work.files, bytes=work.bytes, bytes_done=0)
        finally:
            lock.release()
        self._process = _start(self.index, self._lock_file, places)


def _start(index: Path, lock: Path, places: ConversationPlaces) -> subprocess.Popen[bytes]:
    """It ends when its stdin is closed, so it does not outlive this process."""
    named = [f"--{name}={path}" for name, path in vars(places).items() if path is not None]
    argv = [sys.executable, "-P", "-m", "legion.conversations", f"--index={index}", f"--lock={lock}", *named]
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
