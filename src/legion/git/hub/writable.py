"""A bare repository of ours that we write to. Whatever a killed git left locked is unlocked."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from legion.git.core.errors import GitError
from legion.git.core.history import History
from legion.system import files
from legion.system.process import FinishedProcess

_HELD_LOCK = re.compile(r"Unable to create '(.+?\.lock)': File exists")
# No living git holds a ref lock this long, since no hook runs while it does.
_STALE_SECONDS = 2.0


class WritableRepository(History):
    def _writing(self, *args: str | os.PathLike[str], stdin: bytes = b"") -> FinishedProcess:
        """Run git; where a killed git left a lock behind, remove it and run again."""
        try:
            return self._git(*args, stdin=stdin)
        except GitError as error:
            held = _HELD_LOCK.search(error.complaint)
            if held is None or not self._break_lock(Path(held[1])):
                raise
        return self._git(*args, stdin=stdin)

    def _break_lock(self, lock: Path) -> bool:
        # The flock keeps a second breaker from removing the fresh lock of whoever came after the first.
        with files.waiting_lock(self.path / "lock-breaker"):
            try:
                age = time.time() - lock.stat().st_mtime
            except FileNotFoundError:
                return True
            if age < _STALE_SECONDS or self.path not in lock.parents:
                return False
            lock.unlink()
            return True
