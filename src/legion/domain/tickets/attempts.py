"""Decides what follows a failed attempt: the next one, a backoff before it, or the end."""

from __future__ import annotations

from legion.domain.text import count
from legion.domain.tickets.ticket import Cause, Fail, Park, Parked, ParkReason, StartPoint, Ticket, TryAgain


def has_attempts(ticket: Ticket) -> bool:
    """Are there attempts left after the present one?"""
    return ticket.used < ticket.spec.max_attempts


def next_try(
    ticket: Ticket, reason: str, feedback: str, ground: StartPoint | None = None, cause: Cause = Cause.ATTEMPT
) -> TryAgain | Fail:
    """The next attempt while there are any left, else the end."""
    if has_attempts(ticket):
        return TryAgain(reason, feedback, ground, cause)
    return Fail(f"gave up after {tries_of(ticket)}: {reason}", feedback, ground, cause, why=reason)


def next_try_after_no_change(ticket: Ticket, reason: str, feedback: str, *, again: bool) -> TryAgain | Fail:
    """The next attempt after one that changed nothing. If it is the second one in a row (`again`), a person is
    asked.
    """
    if not again:
        return next_try(ticket, reason, feedback)
    return Fail(f"gave up after {tries_of(ticket)}: {reason}", feedback, why=reason, asks=True)


MOST_FORGIVEN = 20
"""Conflicts of one ticket that cost no attempt, so that a ticket that never wins ends at last."""


def next_try_after_conflict(ticket: Ticket, reason: str, feedback: str, ground: StartPoint) -> TryAgain | Fail:
    """The next attempt after a conflict with what landed meanwhile. That is not the agent's fault: it costs no attempt,
    unless the person wants a single one.
    """
    if ticket.spec.max_attempts > 1 and ticket.skipped > -MOST_FORGIVEN:
        return TryAgain(reason, feedback, ground, Cause.CONFLICT, skips=-1)
    return next_try(ticket, reason, feedback, ground, Cause.CONFLICT)


def tries_of(ticket: Ticket) -> str:
    """How many attempts were made since a person last asked for it."""
    return count(ticket.attempt - ticket.spared, "attempt")


AT_ONCE = 3.0
"""Seconds: a program that ends sooner without a trace has probably not started properly."""
_LONGEST_REST = 60.0


def rests_too_long(parked: Parked, now: float) -> bool:
    """No rest ends that late, so the clock was set back since it started."""
    return parked.reason is ParkReason.RESTING and parked.until is not None and parked.until - now > _LONGEST_REST


def rest(ticket: Ticket, why: str, now: float) -> Park:
    """The backoff before the next attempt, where one ended at once and changed nothing. It doubles each time: a program
    that cannot work would otherwise use up all attempts in a second.
    """
    seconds = min(2.0 ** (ticket.attempt - ticket.spared - 1), _LONGEST_REST)
    detail = f"{why}; it rests {seconds:g} s, or until `legion resume {ticket.id}`"
    return Park(ParkReason.RESTING, detail, until=now + seconds)
