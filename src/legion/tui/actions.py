"""Actions on a ticket: when each applies, the one question before it, and the request."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from legion.client.legion import Legion
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.terminal import OfferWork
from legion.wire.tickets import TicketLine

ENDED = ("done", "failed", "stopped")


@dataclass(frozen=True, kw_only=True)
class TicketAction:
    applies: Callable[[TicketLine], bool]
    perform: Callable[[Legion, int], str]
    """Returns the daemon's sentence about what was done."""
    question: str = ""
    """Asked once before it; empty where a key takes it back."""
    waits: bool = False
    """The daemon answers when the agent has."""


def _is_in(*states: str) -> Callable[[TicketLine], bool]:
    return lambda ticket: ticket.state in states


TICKET_ACTIONS = {
    "stop": TicketAction(
        applies=lambda ticket: ticket.state not in ENDED,
        perform=lambda legion, id: legion.stop(id).message,
        question="Stop #{id}? Its work is kept, and retry brings it back.",
    ),
    "pause": TicketAction(
        applies=_is_in("queued", "working", "checking", "reviewing", "landing"),
        perform=lambda legion, id: legion.pause_ticket(id).message,
    ),
    "resume": TicketAction(applies=_is_in("parked"), perform=lambda legion, id: legion.resume_ticket(id).message),
    "drop": TicketAction(
        applies=_is_in(*ENDED),
        perform=lambda legion, id: legion.drop(id).message,
        question="Remove #{id} from the board? What it landed stays.",
    ),
    "review": TicketAction(
        applies=lambda ticket: ticket.state != "queued" and not ticket.checkpoint,
        perform=lambda legion, id: legion.review(id).message,
    ),
    "land": TicketAction(
        # One that waits for its checks or its review is refused with the reason.
        applies=_is_in("parked", "checking", "reviewing", "landing"),
        perform=lambda legion, id: legion.land(id).message,
    ),
    "undo": TicketAction(
        applies=lambda ticket: ticket.state == "done" and not ticket.checkpoint,
        perform=lambda legion, id: legion.undo(id).message,
        question="Revert #{id}? A new ticket takes its change back and passes the checks like any other.",
    ),
    "checkout": TicketAction(
        applies=lambda ticket: has_change(ticket), perform=lambda legion, id: legion.checkout(id, OfferWork()).message
    ),
    "push": TicketAction(
        applies=lambda ticket: has_change(ticket),
        perform=lambda legion, id: legion.push(id, OfferWork()).message,
        question="Push the work of #{id} to your remote, as a new branch?",
        waits=True,
    ),
    "submit": TicketAction(
        applies=_is_in("working", "parked"), perform=lambda legion, id: legion.submit_ticket(id).message
    ),
    "interrupt": TicketAction(
        applies=_is_in("working"),
        perform=lambda legion, id: legion.interrupt(id).message,
        question="Interrupt the agent of #{id} and pause the ticket? Resume continues it.",
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


def has_landed(ticket: TicketLine) -> bool:
    return ticket.state == "done"


def can_attach(ticket: TicketLine) -> bool:
    return ticket.state in ("working", "queued")


def has_worktree(ticket: TicketLine) -> bool:
    """As far as a line of the board shows; the daemon refuses a ticket without one."""
    return not ticket.checkpoint and ticket.attempt > 0


def can_message(ticket: TicketLine) -> bool:
    return ticket.state == "working"


def can_retry(ticket: TicketLine) -> bool:
    """Ended without landing, or parked: then it is resumed."""
    return ticket.state in ("failed", "stopped", "parked")


def has_change(ticket: TicketLine) -> bool:
    return not ticket.checkpoint and (ticket.state != "queued" or ticket.attempt > 0)
