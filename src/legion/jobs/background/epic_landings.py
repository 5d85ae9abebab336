"""Lands epics that a person wanted to land and that had to wait. One thread, which looks after commits."""

from __future__ import annotations

from collections.abc import Callable

from legion.jobs.loop import BackgroundLoop
from legion.jobs.trees import Trees

_EVERY = 600.0
_QUIET = 1.0


class EpicLandings(BackgroundLoop):
    def __init__(self, context: Trees, land: Callable[[], None]) -> None:
        """`land` lands those that can land now."""
        super().__init__(context, "epic-landings")
        self._land = land

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            self._attempt("the look at epics", self._land)
            self._wake.wait(_EVERY)
            self._stopping.wait(_QUIET)
