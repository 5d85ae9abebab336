"""All that a job works with: board and repositories, and what starts programs here and on other machines."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from legion.jobs.live_state import CheckSlots
from legion.jobs.machines.part import MachinePart
from legion.jobs.trees import Trees
from legion.runner.launch import Launcher

# Limits how many threads prepare and start runs at the same time.
#
# Threads that share the interpreter delay each other: of thirty starts at once, the first would come about when half of
# them are ready. So the first of many goes alone and the others a few at a time; the last is not later for it.

_AT_ONCE = 3
_HELD_FOR = 0.25
"""Seconds after which a holder no longer counts: its [setup] installs something, and others need not wait for that."""
_ALONE_FOR = 0.1
"""Seconds for which the first start after a lull goes alone."""
_LULL = 1.0
_ENDS_WAIT = 2.0
"""Seconds for which the end of a run waits for starts: saving and judging takes longer than a start."""


class StartLimit:
    def __init__(
        self,
        at_once: int = _AT_ONCE,
        *,
        held_for: float = _HELD_FOR,
        alone_for: float = _ALONE_FOR,
        lull: float = _LULL,
    ) -> None:
        self._at_once = at_once
        self._held_for = held_for
        self._alone_for = alone_for
        self._lull = lull
        self._condition = threading.Condition()
        self._holders: dict[object, float] = {}
        """When each of them entered, oldest first."""
        self._alone_until = 0.0
        self._last_end = -lull
        self._count = 0
        self._waiting = 0

    @property
    def count(self) -> int:
        """How many starts are through."""
        return self._count

    @property
    def waiting(self) -> int:
        """How many starts wait for their turn."""
        return self._waiting

    @contextmanager
    def hold(self) -> Iterator[None]:
        holder = object()
        with self._condition:
            self._waiting += 1
            try:
                while (seconds := self._until_free()) > 0:
                    self._condition.wait(seconds)
            finally:
                self._waiting -= 1
            now = time.monotonic()
            if not self._holders and now - self._last_end >= self._lull:
                self._alone_until = now + self._alone_for
            self._holders[holder] = now
        try:
            yield
        finally:
            with self._condition:
                del self._holders[holder]
                self._alone_until = 0.0
                self._last_end = time.monotonic()
                self._count += 1
                self._condition.notify_all()

    def wait_for_start(self, count: int, patience: float) -> None:
        """Return when more than `count` starts are through, or after so many seconds."""
        with self._condition:
            self._condition.wait_for(lambda: self._count > count, patience)

    def let_starts_pass(self, patience: float = _ENDS_WAIT) -> None:
        """Return when no start waits any more, or after so many seconds."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting == 0, patience)

    def _until_free(self) -> float:
        now = time.monotonic()
        if self._holders and now < self._alone_until:
            return self._alone_until - now
        counted = [left for since in self._holders.values() if (left := since + self._held_for - now) > 0]
        return 0.0 if len(counted) < self._at_once else counted[0]


@dataclass(frozen=True, kw_only=True)
class Context(Trees):
    """A function takes the smallest of the three that it can work with."""

    launcher: Launcher
    url: str
    """Where agents reach the daemon."""
    check_slots: CheckSlots = field(default_factory=CheckSlots)
    start_limit: StartLimit = field(default_factory=StartLimit)
    machines: MachinePart = field(default_factory=MachinePart)
