"""The queue, the lease times and the bells that jobs use for runs on other machines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from legion.domain.machines.machine import LeaseTimes
from legion.jobs.machines.engine import JobEngine
from legion.jobs.machines.long_polls import WaitingBeats


class RunBells:
    """Wakes the job that waits for a run on a machine: its files have grown, or its state has changed.

    A bell is called with True where only the files have grown.
    """

    def __init__(self) -> None:
        self._bells: dict[str, Callable[[bool], None]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def listening(self, run: str, bell: Callable[[bool], None]) -> Iterator[None]:
        with self._lock:
            self._bells[run] = bell
        try:
            yield
        finally:
            with self._lock:
                if self._bells.get(run) is bell:
                    del self._bells[run]

    def ring(self, run: str, *, grown: bool = False) -> None:
        """In any thread; a run that no job waits for has no bell."""
        with self._lock:
            bell = self._bells.get(run)
        if bell is not None:
            bell(grown)


class DistantBells(RunBells):
    """The jobs wait in another process, the head; `send` notifies it."""

    def __init__(self, send: Callable[[str], None]) -> None:
        super().__init__()
        self._send = send

    def ring(self, run: str, *, grown: bool = False) -> None:
        self._send(run)


@dataclass(frozen=True, kw_only=True)
class MachinePart:
    engine: JobEngine | None = None
    """None: a head on SQLite, which has no machines."""
    times: LeaseTimes = field(default_factory=LeaseTimes)
    bells: RunBells = field(default_factory=RunBells)
    beats: WaitingBeats = field(default_factory=WaitingBeats)
