"""The gate before landing: whether a change that passed everything waits for the person."""

from __future__ import annotations

from legion.domain.tickets.policy import LandingGate
from legion.domain.tickets.ticket import Ticket


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
