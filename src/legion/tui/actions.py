"""Actions on a ticket: the operation behind each key, the one question before it, and the request.

A key works where the ticket's line offers its operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from legion.client.legion import Legion, question_before
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.terminal import OfferWork
from legion.wire.tickets import TicketLine

OPERATIONS = {
    "stop": ("stop",), "pause": ("pause_ticket",), "resume": ("resume_ticket",), "drop": ("drop",),
    "review": ("review",), "land": ("land",), "undo": ("undo",), "checkout": ("checkout",), "push": ("push",),
    "submit": ("submit_ticket",), "interrupt": ("interrupt",), "message": ("tell",), "attach": ("attach",),
    "shell": ("shell",), "diff": ("diff",), "retry": ("retry", "resume_ticket"),
}  # fmt: skip
"""By action of the key map: the operations of which one must be offered."""


def offers(ticket: TicketLine | None, action: str) -> bool:
    """Whether the action can be done with the ticket now."""
    return ticket is not None and any(name in ticket.offers for name in OPERATIONS[action])


def question_of(action: str, id: int, title: str) -> str:
    """Asked once before it; empty where a key takes it back."""
    return question_before(OPERATIONS[action][0], f"#{id} {title}")


@dataclass(frozen=True, kw_only=True)
class TicketAction:
    perform: Callable[[Legion, int], str]
    """Returns the daemon's sentence about what was done."""
    waits: bool = False
    """The daemon answers when the agent has."""


TICKET_ACTIONS = {
    "stop": TicketAction(
        perform=lambda legion, id: legion.stop(id).message,
    ),
    "pause": TicketAction(perform=lambda legion, id: legion.pause_ticket(id).message),
    "resume": TicketAction(perform=lambda legion, id: legion.resume_ticket(id).message),
    "drop": TicketAction(
        perform=lambda legion, id: legion.drop(id).message,
    ),
    "review": TicketAction(perform=lambda legion, id: legion.review(id).message),
    "land": TicketAction(
        perform=lambda legion, id: legion.land(id).message,
    ),
    "undo": TicketAction(
        perform=lambda legion, id: legion.undo(id).message,
    ),
    "push": TicketAction(
        perform=lambda legion, id: legion.push(id, OfferWork()).message,
        waits=True,
    ),
    "submit": TicketAction(
        perform=lambda legion, id: legion.submit_ticket(id).message,
    ),
    "interrupt": TicketAction(
        perform=lambda legion, id: legion.interrupt(id).message,
        waits=True,
    ),
}


def run_checks(cwd: str, id: int) -> Callable[[Legion], str]:
    """A checkpoint runs the project's checks on landed code."""
    ticket = NewTicket(title=f"Checks after #{id}", after=[id], checkpoint=True)
    wanted = Dispatch(cwd=cwd, tickets=[ticket], request=os.urandom(16).hex())

    def perform(legion: Legion) -> str:
        made = legion.dispatch(wanted)
        return " ".join([f"Ticket {made.ids[0]} runs the checks.", *made.notes])

    return perform
