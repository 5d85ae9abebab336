"""The destination of landed work: only the hub, a branch elsewhere, or a pull request; and the gate before it."""

from __future__ import annotations

from enum import Enum

from legion.domain.tickets.policy import LandingGate
from legion.domain.tickets.ticket import Ticket


class PullUnit(Enum):
    """What becomes one pull request, with the target `pr`."""

    TICKET = "ticket"
    EPIC = "epic"
    """All tickets of an epic together; a ticket without an epic still has its own."""


class LandingTarget(Enum):
    LOCAL = "local"
    """The target branch is in the hub; `legion collect` brings it to the person."""
    BRANCH = "branch"
    """Each landed commit is pushed to the branch of the project's forge."""
    PR = "pr"
    """A proven change becomes a pull request, and lands when that is merged."""


def is_gated(ticket: Ticket, *, epic: LandingGate | None, project: LandingGate) -> bool:
    """The ticket's own gate counts first, then that of its epic, then the project's. An undo never waits: the person
    asked for exactly that change.
    """
    if ticket.spec.undoes is not None or ticket.spec.checkpoint:
        return False
    return (ticket.spec.gate or epic or project) is LandingGate.PERSON


def gate_key(ticket: Ticket, *, again: bool = False) -> str:
    """The key of the question about the present change. `again`: of a later one, where the first is settled."""
    assert ticket.change is not None, "only a change waits at the gate"
    return f"gate:{ticket.id}/{ticket.spared}/{ticket.change.commit}{'/again' if again else ''}"
