"""The base of the daemon's loops: a thread that works until it is stopped, and can be woken."""

from __future__ import annotations

import logging
import threading

from legion.jobs.context import Context

log = logging.getLogger(__name__)

_AFTER_ERROR = 10.0


class BackgroundLoop:
    """A subclass writes `_repeat`, which returns soon after `_stopping` is set.

    An error that it does not expect is logged, and it starts again after a pause: no loop ends or spins unseen.
    """

    pause = _AFTER_ERROR
    """Seconds."""

    def __init__(self, context: Context, name: str) -> None:
        self.context = context
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_repeating, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        """The store has changed."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    def _keep_repeating(self) -> None:
        while not self._stopping.is_set():
            try:
                self._repeat()
                return
            except Exception as trouble:  # any error: a loop that has ended would be missed by no one
                name = self._thread.name
                log.error("%s: failed, starts again in %g s: %s", name, self.pause, trouble, exc_info=trouble)
                self._stopping.wait(self.pause)

    def _repeat(self) -> None:
        raise NotImplementedError
