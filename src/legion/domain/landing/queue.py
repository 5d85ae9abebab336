"""The merge queue's order: who is tried next, and how many together.

A person's priority comes first. Of equal priority the smaller change goes first: it holds up fewer, and of two that
conflict the bigger one stays with the agent that knows more about it. Whom newcomers have passed by often enough goes
before the others of its priority, by age, so that nobody waits for ever.

A batch tells most when it is as likely to be green as to be red. One that is red may have had the one bad change of
many; a second one in a row is followed by half as many, and one that is green by up to twice as many: with one bad
change in five, batches soon hold about three.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from legion.domain.landing.bisect import LandingIntent

PATIENCE = 3
"""So many landings with a newcomer in them may pass a change by."""


@dataclass(frozen=True, kw_only=True)
class QueueEntry:
    """A change in the queue."""

    ticket: int
    priority: int
    since: float
    lines: int
    """How many it adds and removes."""
    passed: int = 0
    """Landings that brought somebody who came later."""

    @property
    def overdue(self) -> bool:
        return self.passed >= PATIENCE


def ordered(waiting: Iterable[QueueEntry]) -> tuple[QueueEntry, ...]:
    return tuple(sorted(waiting, key=_turn))


def _turn(one: QueueEntry) -> tuple[int, bool, int, float, int]:
    return -one.priority, not one.overdue, 0 if one.overdue else one.lines, one.since, one.ticket


def passed_by(since: float, landings: Iterable[LandingIntent]) -> int:
    """How many of these brought one that came into the queue after this moment."""
    return sum(1 for one in landings if one.landed and any(other > since for other in one.since.values()))


def room_after(*, reds: int, tried: int, room: int, most: int) -> int:
    """How many changes the next batch may hold, after one of `tried` where there was `room` for so many.

    It was the last of `reds` red ones in a row, or green where that is none. A green one proves no more than twice its
    own size. A change that is red with nobody beside it says nothing of how many go well together, but that there are
    bad ones: the room is halved.
    """
    if not reds:
        return min(most, max(room, 2 * tried))
    if reds == 1:
        return min(most, room)
    return min(most, max(1, (tried if tried > 1 else room) // 2))
