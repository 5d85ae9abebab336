"""Gives a new ticket a change that exists already, so no agent makes it; an agent that gets it back starts from it."""

from __future__ import annotations

from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import Change, Propose, Rewind, Start
from legion.store.board import tickets
from legion.store.database.transactions import Transaction


def propose(tx: Transaction, ticket: int, start: StartPoint, commit: str) -> None:
    tickets.move(tx, ticket, Rewind(start, ""))
    tickets.move(tx, ticket, Start(start.base))
    tickets.move(tx, ticket, Propose(Change(base=start.base, commit=commit)))
