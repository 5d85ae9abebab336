"""State in memory that one part of the daemon writes and other threads read: backoffs, warnings, check trees in use.

Each map belongs to one part. A change replaces the map by a new one, so readers need no lock and never see a map change
while they iterate over it. Nothing here survives a restart.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar

from legion.domain.landing.conflicts import PredictedConflict
from legion.domain.landing.queue import QueueTestKind
from legion.domain.scheduling.admission import HoldReason, StartCandidate
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets.ticket import Change

K = TypeVar("K")
V = TypeVar("V")

Job = tuple[JobKind, int]
"""A kind of job, and its ticket, project or agent."""

_MOST_SIZES = 1000
_MOST_FAILURES = 100
_RECENT = 3600.0
"""Seconds for which doctor shows a failure."""


class SharedMap(Generic[K, V]):
    """A map that is replaced as a whole at each change. With a `limit` it drops its oldest entries."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._writing = threading.Lock()
        self._current: Mapping[K, V] = MappingProxyType({})

    @property
    def current(self) -> Mapping[K, V]:
        return self._current

    def get(self, key: K) -> V | None:
        return self._current.get(key)

    def replace(self, entries: Mapping[K, V]) -> None:
        with self._writing:
            self._publish(dict(entries))

    def update(self, entries: Mapping[K, V]) -> None:
        with self._writing:
            self._publish({**self._current, **entries})

    def remove(self, keys: Iterable[K]) -> None:
        gone = frozenset(keys)
        if gone.isdisjoint(self._current):
            return
        with self._writing:
            self._publish({key: value for key, value in self._current.items() if key not in gone})

    def _publish(self, entries: dict[K, V]) -> None:
        if self._limit is not None:
            for key in list(entries)[: max(0, len(entries) - self._limit)]:
                del entries[key]
        self._current = MappingProxyType(entries)


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """A job raised an error that no ticket is to blame for. The scheduler starts it again after this time."""

    length: float
    until: float
    why: str
    """One line, for people."""

    def ends_at(self, now: float) -> float:
        """Its end; at once where the clock was set back, since it would take longer than it was meant to."""
        return self.until if self.until - now <= self.length else now


@dataclass(frozen=True, kw_only=True)
class SchedulerState:
    """Written by the scheduler."""

    backoffs: SharedMap[Job, Backoff] = field(default_factory=SharedMap)
    holds: SharedMap[StartCandidate, HoldReason] = field(default_factory=SharedMap)
    """Candidates that could start and are held, as of the last decision."""
    unreadable: SharedMap[int, str] = field(default_factory=SharedMap)
    """Projects whose stored legion.toml cannot be parsed, and what is wrong with it. None of their jobs start."""
    undecided: SharedMap[str, Backoff] = field(default_factory=SharedMap)
    """By its reason: the last decision failed, so nothing new starts. Empty where it succeeded."""


@dataclass(frozen=True, kw_only=True)
class QueueTest:
    """A test that a merge queue runs now."""

    project: int
    kind: QueueTestKind
    tickets: tuple[int, ...]
    """In the order in which they are put on the target."""
    upstream: bool
    """The person's own commits are tested with them."""
    tree: str
    checks: tuple[tuple[str, str], ...]
    """Name and command of each, in the order in which they run."""
    since: float


@dataclass(frozen=True, kw_only=True)
class QueueState:
    """Written by the merge queues of all projects."""

    notes: SharedMap[int, str] = field(default_factory=SharedMap)
    """By ticket: what its merge queue does with it now. A ticket that only waits has no note."""
    tests: SharedMap[str, QueueTest] = field(default_factory=SharedMap)
    """Those that run now, the oldest first."""
    suspected: SharedMap[int, tuple[int, ...]] = field(default_factory=SharedMap)
    """By project: the tickets of a red batch of which one is to blame, while that is searched."""
    blamed: SharedMap[int, tuple[str, ...]] = field(default_factory=SharedMap)
    """By ticket: the checks that blame it, until they were repeated alone."""
    red_batches: SharedMap[int, int] = field(default_factory=SharedMap)
    """By project: how many batches in a row were red."""
    change_sizes: SharedMap[Change, int] = field(default_factory=lambda: SharedMap(_MOST_SIZES))
    """Lines that a queued change adds and removes. A commit never changes, so git is asked once."""


class TrialState:
    """Trials of checks that run now. Written by the thread that runs one; readers may wait for the next step."""

    def __init__(self) -> None:
        self.running: SharedMap[int, tuple[str, ...]] = SharedMap()
        """By project: the steps so far, the last of which runs."""
        self.troubles: SharedMap[int, str] = SharedMap()
        """By project: why its trial could not run; it is tried again."""
        self.again: SharedMap[int, bool] = SharedMap()
        """Projects whose next trial repeats everything, because a person asked for it."""
        self._changed = threading.Condition()
        self._number = 0
        self._locks: dict[int, threading.Lock] = {}

    @property
    def number(self) -> int:
        """Grows with each step."""
        return self._number

    def lock(self, project: int) -> threading.Lock:
        """Held while the trial of the project runs."""
        with self._changed:
            return self._locks.setdefault(project, threading.Lock())

    def begin(self, project: int, step: str) -> None:
        self.running.update({project: (*(self.running.get(project) or ()), step)})
        self._tell()

    def end(self, project: int, trouble: str = "") -> None:
        self.running.remove([project])
        self.troubles.remove([project])
        if trouble:
            self.troubles.update({project: trouble})
        self._tell()

    def wait(self, after: int, timeout: float) -> None:
        """Until there is a step later than `after`."""
        with self._changed:
            self._changed.wait_for(lambda: self._number > after, timeout)

    def _tell(self) -> None:
        with self._changed:
            self._number += 1
            self._changed.notify_all()


@dataclass(frozen=True, kw_only=True)
class LiveState:
    scheduler: SchedulerState = field(default_factory=SchedulerState)
    queue: QueueState = field(default_factory=QueueState)
    trials: TrialState = field(default_factory=TrialState)
    warnings: SharedMap[int, str] = field(default_factory=SharedMap)
    """By run, written by the watchdog: why it makes no progress. A run that does has no entry."""
    predicted_conflicts: SharedMap[int, tuple[PredictedConflict, ...]] = field(default_factory=SharedMap)
    """By project, written by the conflict predictor: open changes that will conflict."""
    guesses: SharedMap[int, frozenset[str]] = field(default_factory=SharedMap)
    """By ticket, written by the scheduler: the definitions that its text claims. Empty for most."""
    tried: SharedMap[int, tuple[int, bool]] = field(default_factory=SharedMap)
    """By ticket whose proofs were tried before its first attempt: on the change of which other one (0: the target), and
    whether that one brings its work. After a restart they are tried again.
    """
    failures: SharedMap[str, tuple[float, str]] = field(default_factory=lambda: SharedMap(_MOST_FAILURES))
    """By work in the background: when it last met an error that its code does not expect, and which."""

    def recent_failures(self, now: float) -> dict[str, tuple[float, str]]:
        return {what: one for what, one in self.failures.current.items() if one[0] > now - _RECENT}


FIRST = 0
"""The slot that is used most."""


class CheckSlots:
    """A slot is the number of a check tree. Its holder is the only one that uses that tree."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._taken: dict[int, set[int]] = {}
        self._exclusive: set[int] = set()
        """Projects in which one thread holds, or waits for, all slots."""

    def take(self, project: int, most: int) -> int:
        """The lowest free slot below `most`. Blocks until there is one."""
        with self._condition:
            taken = self._taken.setdefault(project, set())
            self._condition.wait_for(lambda: len(taken) < most and project not in self._exclusive)
            slot = next(number for number in range(most) if number not in taken)
            taken.add(slot)
            return slot

    @contextmanager
    def alone(self, project: int) -> Iterator[int]:
        """A slot while no other slot of the project is taken."""
        with self._condition:
            self._condition.wait_for(lambda: project not in self._exclusive)
            self._exclusive.add(project)
            self._condition.wait_for(lambda: not self._taken.get(project))
        try:
            yield FIRST
        finally:
            with self._condition:
                self._exclusive.discard(project)
                self._condition.notify_all()

    def give_back(self, project: int, slot: int) -> None:
        with self._condition:
            self._taken[project].discard(slot)
            self._condition.notify_all()
