"""Hands out check trees: how many checks of a project run at once, and in which tree each of them runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
