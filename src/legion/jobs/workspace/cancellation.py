"""Whether somebody still needs what a test will say. When nobody does, what runs for it is stopped."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from legion.domain.errors import LegionError
from legion.runner import launch


class Cancelled(LegionError):
    """A test was given up because nobody waits for it any more. It leaves no receipt."""


class CancelToken:
    """Held by who tests, ended by who knows better; each from a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gone = False
        self._running: Path | None = None

    def end(self) -> None:
        with self._lock:
            self._gone = True
            running = self._running
        if running is not None:
            launch.stop(running, grace=0)

    def refuse_if_gone(self) -> None:
        if self._gone:
            raise Cancelled("The test was given up because nobody waits for it any more.")

    @contextlib.contextmanager
    def running(self, run_dir: Path) -> Iterator[None]:
        """Around the time in which a started command runs. Raises Unneeded where it was not let to its end."""
        with self._lock:
            self._running = run_dir
            gone = self._gone
        try:
            if gone:
                launch.stop(run_dir, grace=0)
            yield
        finally:
            with self._lock:
                self._running = None
        self.refuse_if_gone()
