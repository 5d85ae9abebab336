"""Gives a new ticket to a standing agent by name, in the transaction that creates it."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.agents.agent import ROOT, STANDING
from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.domain.projects import Project
from legion.domain.tickets import board
from legion.jobs.agent import preparation
from legion.jobs.turn import claimed_tickets
from legion.store.board import tickets
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, ticket_holders
from legion.wire.dispatch import Dispatch


def with_driver(request: Dispatch) -> Dispatch:
    """The request with the driver of a standing agent, where it names one. Raises BadInput where it cannot."""
    if not request.to:
        return request
    if len(request.tickets) != 1:
        raise BadInput("--to takes one ticket: dispatch the others without it.")
    (new,) = request.tickets
    if new.checkpoint or new.command or new.driver not in ("", STANDING):
        raise BadInput("--to names the agent, so the ticket takes no --checkpoint, --command or --driver.")
    return replace(request, tickets=[replace(new, driver=STANDING)])


def to_agent(tx: Transaction, project: Project, request: Dispatch, ticket_id: int) -> str:
    """Claim the new ticket for the agent of the request. Returns a sentence about it."""
    agent = agents.find(tx, request.to, by=ROOT)
    if agent.fired_at is not None or agent.project != project.id:
        raise NotFound(f"{request.to[:40]!r} is no agent of this project: `legion agents` lists them.")
    ticket = tickets.get(tx, ticket_id)
    held = ticket_holders.current(tx, agent.id)
    if held is not None:
        raise StateConflict(f"{agent.name} holds ticket {held.ticket}: wait for it, or choose another agent.")
    if request.tickets[0].plan_first and not preparation.can_limit_tools(agent):
        raise StateConflict(
            f"{agent.name} works with {agent.driver}, which cannot be limited to reading: leave out --plan-first."
        )
    if not board.ready(ticket.spec.after, tickets.states_of(tx, ticket.spec.after)):
        raise StateConflict("The ticket comes after others that have not landed: dispatch it without --to.")
    claimed_tickets.claim(tx, agent, ticket)
    return f"{agent.name} gets it with its next turn."
