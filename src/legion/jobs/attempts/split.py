"""Proposes several tickets in place of one that failed because it is too large. The person decides about the plan."""

from __future__ import annotations

from legion.domain.plans.plan import split_of
from legion.domain.tickets.ticket import Cause, Fail, Step, Ticket
from legion.jobs.trees import settings_of
from legion.store.board import goals, projects
from legion.store.database.transactions import Transaction


def propose_if_too_large(tx: Transaction, ticket: Ticket, step: Step) -> None:
    """In the transaction that ends the last attempt. Once: a plan about the ticket is enough."""
    if not isinstance(step, Fail) or step.cause is not Cause.SIZE:
        return
    spec = ticket.spec
    settings = settings_of(projects.get(tx, ticket.project)).plans
    if spec.command or spec.checkpoint or spec.dispatcher or not settings.split:
        # A plain program needs no model, and an agent's ticket has no money of the person for a planner.
        return
    if any(plan.about == ticket.id for plan in goals.of_project(tx, ticket.project)):
        return
    goals.create(tx, split_of(ticket))
