"""Lands epics that a person wanted to land and that had to wait. One thread, which looks after commits."""

from __future__ import annotations

import logging
from collections.abc import Callable

from legion.domain.errors import LegionError
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop

log = logging.getLogger(__name__)

_EVERY = 600.0
_QUIET = 1.0


class EpicLandings(BackgroundLoop):
    def __init__(self, context: Context, land: Callable[[], None]) -> None:
        """`land` lands those that can land now."""
        super().__init__(context, "epic-landings")
        self._land = land

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self._land()
            except (LegionError, OSError) as trouble:
                log.warning("epics could not be read, will retry: %s", trouble)
            self._wake.wait(_EVERY)
            self._stopping.wait(_QUIET)
