"""Changes that a red test stands against. They step aside until that test can be repeated with no other beside it.

While others wait, those go first: a repetition needs the whole machine. Nothing of this is stored; after a crash a
suspect is a change in the queue like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from legion.domain.tickets.ticket import Ticket
from legion.jobs.checks.execution import CheckedCommit

_MOST_BATCHES = 3
"""So many batches of others go before a suspect, and no more."""


@dataclass(frozen=True, kw_only=True)
class Suspect:
    ticket: Ticket
    against: CheckedCommit
    """What is red with it, and not without."""
    alone: bool
    """It is red on the target as it was, without any companion."""
    room: int
    """How many changes were tried together before its batch was red."""


class Suspects:
    """One project's, for as long as its land job runs."""

    def __init__(self) -> None:
        self._waiting: list[Suspect] = []
        self._batches = 0

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(one.ticket.id for one in self._waiting)

    def add(self, suspect: Suspect) -> None:
        self._waiting.append(suspect)

    def without(self, tickets: Iterable[Ticket]) -> tuple[Ticket, ...]:
        """Those that nothing stands against. Whom a person took out and brought back is another one."""
        known = {(one.ticket.id, one.ticket.version) for one in self._waiting}
        return tuple(ticket for ticket in tickets if (ticket.id, ticket.version) not in known)

    def next(self, others_wait: bool) -> Suspect | None:
        """Whose turn it is now, before the next batch of others."""
        if not self._waiting:
            return None
        if others_wait and self._batches < _MOST_BATCHES:
            self._batches += 1
            return None
        self._batches = 0
        return self._waiting.pop(0)
