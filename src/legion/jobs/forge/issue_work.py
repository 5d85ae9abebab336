"""The work on an issue: its ticket, or the ticket that lands the epic's branch on which that one landed."""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.tickets.ticket import State, Ticket
from legion.store import epic_sessions
from legion.store.board import projects, tickets
from legion.store.database.transactions import ReadTransaction


@dataclass(frozen=True, kw_only=True)
class IssueWork:
    ticket: Ticket
    """The one that was made from the issue."""
    lander: Ticket
    """The one whose landing completes the work; mostly the same."""
    waits_on: str = ""
    """The branch of an epic that has the change, and that has not been offered yet."""

    @property
    def ended(self) -> bool:
        return self.lander.ended and not self.waits_on


def work_of(tx: ReadTransaction, parent: int, number: int) -> IssueWork | None:
    """The work of a ticket that was made from an issue of the project `parent`. None: a person dropped it."""
    if tickets.dropped(tx, [number]):
        return None
    ticket = tickets.get(tx, number)
    if ticket.project == parent or ticket.state is not State.DONE:
        return IssueWork(ticket=ticket, lander=ticket)
    session = projects.get(tx, ticket.project)
    lander = epic_sessions.ticket_of(tx, parent, session)
    if lander is None:
        waits = session.removed_at is None or epic_sessions.ends_to_land(tx, parent, session)
        return IssueWork(ticket=ticket, lander=ticket, waits_on=session.branch if waits else "")
    return None if tickets.dropped(tx, [lander]) else IssueWork(ticket=ticket, lander=tickets.get(tx, lander))
