"""The base of the daemon's loops: a thread that works until it is stopped, and can be woken."""

from __future__ import annotations

import threading

from legion.jobs.context import Context


class BackgroundLoop:
    """A subclass writes `_repeat`, which returns soon after `_stopping` is set."""

    def __init__(self, context: Context, name: str) -> None:
        self.context = context
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        """The store has changed."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    def _repeat(self) -> None:
        raise NotImplementedError
