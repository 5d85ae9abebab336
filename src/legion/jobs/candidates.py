"""Candidates: what the target would be with a change in it. The same input gives the same commit."""

from __future__ import annotations

from legion.domain.tickets import Ticket
from legion.git import merging
from legion.git.merging import Candidate, Conflict
from legion.jobs.saving import AUTHOR
from legion.jobs.world import Workshop


def candidate(shop: Workshop, target: str, ticket: Ticket) -> Candidate | Conflict:
    """The ticket's change on top of `target`, in the project's landing mode."""
    assert ticket.change is not None, "only a ticket with a change has a candidate"
    return merging.merge(
        shop.hub,
        target,
        ticket.change.commit,
        mode=shop.config.landing.mode,
        message=message(ticket),
        author=AUTHOR,
        committer=AUTHOR,
        when=int(ticket.moved_at),
    )


def message(ticket: Ticket) -> str:
    title = " ".join(ticket.wish.title.split())
    subject = title if len(title) <= 72 else f"{title[:71]}…"
    body = f"{ticket.wish.text.strip()}\n\n" if ticket.wish.text.strip() and ticket.wish.text.strip() != title else ""
    return f"{subject}\n\n{body}Ticket: {ticket.id}\nAttempts: {ticket.attempt}\n"
