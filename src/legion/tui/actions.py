"""Actions on a ticket: the operation behind each key, the one question before it, and the request.

A key works where the ticket's line offers its operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from legion.client.legion import Legion
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


OFFERED_TO_ALL = ("stop", "pause", "resume", "drop", "review", "land", "undo", "push", "submit", "interrupt")
"""Actions that are one request, so that all marked tickets can have it."""


def request_of(action: str, id: int) -> tuple[str, tuple[object, ...]]:
    """The operation, and what it is given."""
    return OPERATIONS[action][0], (id, OfferWork()) if action == "push" else (id,)


def run_checks(cwd: str, id: int) -> Callable[[Legion], str]:
    """A checkpoint runs the project's checks on landed code."""
    ticket = NewTicket(title=f"Checks after #{id}", after=[id], checkpoint=True)
    wanted = Dispatch(cwd=cwd, tickets=[ticket], request=os.urandom(16).hex())

    def perform(legion: Legion) -> str:
        made = legion.dispatch(wanted)
        return " ".join([f"Ticket {made.ids[0]} runs the checks.", *made.notes])

    return perform
