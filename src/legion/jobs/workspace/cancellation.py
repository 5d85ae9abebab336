"""Cancels a test whose result is no longer needed."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from legion.domain.errors import LegionError
from legion.runner import launch
from legion.runner.spec import RunnerError

log = logging.getLogger(__name__)


class Cancelled(LegionError):
    """The test was cancelled. It leaves no receipt."""


class CancelToken:
    """Passed to a test, or to several at once, by the thread that may cancel them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._running: set[Path] = set()

    def cancel(self) -> None:
        """Raises RunnerError where the runner of the test's command does not answer."""
        with self._lock:
            self._cancelled = True
            running = tuple(self._running)
        for run_dir in running:
            launch.stop(run_dir, grace=0)

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        if self._cancelled:
            raise Cancelled("The test was cancelled because its result is no longer needed.")

    @contextlib.contextmanager
    def running(self, run_dir: Path) -> Iterator[None]:
        """Around the time in which a started command runs. Raises Cancelled at its end if that was not its own."""
        with self._lock:
            self._running.add(run_dir)
            cancelled = self._cancelled
        try:
            if cancelled:
                launch.stop(run_dir, grace=0)
            yield
        finally:
            with self._lock:
                self._running.discard(run_dir)
        self.raise_if_cancelled()


def cancel_all(tokens: Iterable[CancelToken]) -> None:
    """Cancel each of them, also where the runner of one does not answer: that test ends by itself."""
    for token in tokens:
        try:
            token.cancel()
        except RunnerError as silent:
            log.warning("a cancelled test may run to its end: %s", silent.message)
