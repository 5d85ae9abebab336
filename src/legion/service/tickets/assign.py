"""Gives a new ticket to a standing agent by name, in the transaction that creates it."""

from __future__ import annotations

from collections.abc import Callable

from legion.domain.agents.agent import ROOT, STANDING
from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.domain.tickets import board
from legion.jobs.agent import standing_program
from legion.jobs.context import Context
from legion.jobs.turn import claimed_tickets
from legion.service.projects import registry
from legion.store.board import tickets
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, ticket_holders
from legion.wire.dispatch import Dispatch, Dispatched


def to_agent(context: Context, request: Dispatch) -> Callable[[Transaction, Dispatched], None] | None:
    """What a dispatch does in its transaction to give its ticket to the agent of the request."""
    if not request.to:
        return None
    if len(request.tickets) != 1:
        raise BadInput("--to takes one ticket: dispatch the others without it.")
    (new,) = request.tickets
    if new.checkpoint or new.command or new.driver not in ("", STANDING):
        raise BadInput("--to names the agent, so the ticket takes no --checkpoint, --command or --driver.")
    new.driver = STANDING
    project = registry.find(context, request.cwd)

    def assign(tx: Transaction, made: Dispatched) -> None:
        agent = agents.find(tx, request.to, by=ROOT)
        if agent.fired_at is not None or agent.project != project.id:
            raise NotFound(f"{request.to[:40]!r} is no agent of this project: `legion agents` lists them.")
        ticket = tickets.get(tx, made.ids[0])
        held = ticket_holders.current(tx, agent.id)
        if held is not None:
            raise StateConflict(f"{agent.name} holds ticket {held.ticket}: wait for it, or choose another agent.")
        if new.plan_first and not standing_program.can_limit_tools(agent):
            raise StateConflict(
                f"{agent.name} works with {agent.driver}, which cannot be limited to reading: leave out --plan-first."
            )
        if not board.ready(ticket.spec.after, tickets.states_of(tx, ticket.spec.after)):
            raise StateConflict("The ticket comes after others that have not landed: dispatch it without --to.")
        claimed_tickets.claim(tx, agent, ticket)
        made.notes.append(f"{agent.name} gets it with its next turn.")

    return assign
