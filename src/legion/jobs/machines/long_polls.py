"""The beats of machines that wait for work at this head, so that a run is given to one as it is placed.

The row of the placed run decides which worker process has it. A job that reaches no beat is sent with the next beat of
the same process, so whatever is lost here costs time only.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from legion.jobs.machines.engine import RunKey

_SURE = 3
"""A beat that arrives late looks like two: that of the old process, and the next of the new one."""
_MOST_WORKERS = 8


@dataclass(frozen=True, kw_only=True)
class BeatFacts:
    """What a machine reports of itself."""

    boot: str
    worker: str
    """Names the worker process; another one has another name."""
    version: str
    protocol: int
    running: frozenset[RunKey]
    mirrors: frozenset[int]
    acks: frozenset[int]
    free: int
    toolchain: str | None
    disk_free_mb: int | None = None
    disk_floor_mb: int = 0
    targets: Mapping[int, str] | None = None
    """The targets of its mirrors, as it knows them; None where it does not follow them."""


class WaitingBeat:
    """One request of a machine whose answer waits. It gets at most one job."""

    def __init__(self, facts: BeatFacts, wake: Callable[[], None]) -> None:
        self.facts = facts
        self.ended = False
        self._wake = wake
        self._job: dict[str, Any] | None = None

    def job(self) -> dict[str, Any] | None:
        """What it was given."""
        return self._job

    def give(self, job: dict[str, Any]) -> None:
        """For the thread that reserved it. A request that has ended meanwhile does not carry it."""
        self._job = job
        self._wake()


class WaitingBeats:
    """All that wait at this head now. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._beats: defaultdict[int, list[WaitingBeat]] = defaultdict(list)
        self._workers: dict[int, tuple[list[str], int]] = {}
        """By machine: its processes, the newest last, and how often one was heard after another had replaced it."""

    def is_shared(self, machine: int, worker: str) -> bool:
        """Whether this process takes turns with another one: one that was restarted never comes back."""
        with self._lock:
            known, returns = self._workers.get(machine, ([], 0))
            if not worker or known[-1:] == [worker]:
                return False
            returns += worker in known
            others = [one for one in known if one != worker][-_MOST_WORKERS:]
            self._workers[machine] = ([*others, worker], returns)
            if returns < _SURE:
                return False
            del self._workers[machine]
            return True

    @contextmanager
    def waiting(self, machine: int, facts: BeatFacts, wake: Callable[[], None]) -> Iterator[WaitingBeat]:
        """`wake` is called in any thread when the beat has a job. A beat that asks for no run gets none."""
        beat = WaitingBeat(facts, wake)
        if facts.free > 0:
            with self._lock:
                self._beats[machine].append(beat)
        try:
            yield beat
        finally:
            with self._lock:
                beat.ended = True
                if beat in self._beats[machine]:
                    self._beats[machine].remove(beat)
                if not self._beats[machine]:
                    del self._beats[machine]

    @contextmanager
    def reserved(self, machine: int) -> Iterator[WaitingBeat | None]:
        """The newest beat of the machine, for this block alone: an older one may be of a lost connection. A beat that
        gets no job here waits on.
        """
        with self._lock:
            beats = self._beats.get(machine)
            beat = beats.pop() if beats else None
        try:
            yield beat
        finally:
            with self._lock:
                if beat is not None and beat.job() is None and not beat.ended:
                    self._beats[machine].append(beat)
