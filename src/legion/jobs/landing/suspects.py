"""Changes blamed by a failed test. They leave the queue until that test is repeated alone.

While others wait, those go first: the repetition runs with no other test of the project. Nothing of this is stored;
after a crash a suspect is a change in the queue like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from legion.domain.tickets.ticket import Ticket
from legion.jobs.checks.execution import CheckedCommit

_MOST_BATCHES = 3
"""At most so many batches of others go before a suspect."""


@dataclass(frozen=True, kw_only=True)
class Suspect:
    ticket: Ticket
    against: CheckedCommit
    """The result that is red with it and not without it."""
    alone: bool
    """It is red on the target without any other change."""
    room: int
    """How many changes a batch could hold before this one was red."""


class Suspects:
    """Those of one project, for the length of one land job."""

    def __init__(self) -> None:
        self._waiting: list[Suspect] = []
        self._batches = 0

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(one.ticket.id for one in self._waiting)

    def add(self, suspect: Suspect) -> None:
        self._waiting.append(suspect)

    def without(self, tickets: Iterable[Ticket]) -> tuple[Ticket, ...]:
        """Those that are no suspects. A ticket that was removed and queued again has a new version and is no longer
        one.
        """
        known = {(one.ticket.id, one.ticket.version) for one in self._waiting}
        return tuple(ticket for ticket in tickets if (ticket.id, ticket.version) not in known)

    def next(self, others_wait: bool) -> Suspect | None:
        """The suspect whose turn it is before the next batch of others."""
        if not self._waiting:
            return None
        if others_wait and self._batches < _MOST_BATCHES:
            self._batches += 1
            return None
        self._batches = 0
        return self._waiting.pop(0)
