"""The gate of the merge queue: a change that passed everything waits until the person lands it.

A gated change is tested alone on the target, as if it landed. If it is green its ticket is parked with one question.
The person's yes is the settled question: it counts for exactly this change, which then takes the usual way.
"""

from __future__ import annotations

from collections.abc import Sequence

from legion.domain.checks import Receipt
from legion.domain.events import EventKind
from legion.domain.landing.queue import gate_key, is_gated
from legion.domain.questions import LAND, Question, QuestionKind
from legion.domain.review.additions import warning
from legion.domain.rules import Rule
from legion.domain.scheduling.decide import Claim
from legion.domain.tickets.ticket import Park, ParkReason, Ticket
from legion.jobs.checks import approvals, execution, red_checks
from legion.jobs.checks.execution import CheckedCommit
from legion.jobs.checks.job import confirmed
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext, Trees
from legion.store import epic_sessions
from legion.store.board import questions, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import claims

_PATIENCE = 30 * 86_400.0
"""Seconds until the question leaves the inbox; the change still waits after that."""


def waits(tx: ReadTransaction, project: ProjectContext, ticket: Ticket) -> bool:
    """Whether the ticket's change may not land before the person says so."""
    epic = epic_sessions.gates(tx).get((project.id, ticket.spec.epic)) if ticket.spec.epic else None
    if ticket.change is None or not is_gated(ticket, epic=epic, project=project.config.landing.gate):
        return False
    asked = (questions.by_key(tx, gate_key(ticket)), questions.by_key(tx, gate_key(ticket, again=True)))
    return not any(one is not None and one.choice == LAND for one in asked)


def stop_for_person(context: Trees, ticket: Ticket, because: Sequence[Receipt]) -> None:
    """Park the ticket and ask, unless a person has moved it or released it meanwhile. `because`: what it passed."""
    assert ticket.change is not None, "it was tested"
    hidden = warning(approvals.find_hidden(context.project(ticket.project), ticket.change))
    with context.store.write() as tx:
        current = tickets.get(tx, ticket.id)
        if current.version != ticket.version:
            return
        question = _ask(tx, ticket, gate_key(ticket), f" {hidden}".rstrip())
        if question.choice == LAND:
            return
        why = "it passed everything and waits for you"
        tickets.move(tx, ticket.id, Park(ParkReason.QUESTION, why), rule=Rule.GATE)
        data = {"receipts": [one.id for one in because], "rule": Rule.GATE.value}
        tx.record(EventKind.AT_GATE, project=ticket.project, ticket=ticket.id, data=data)


def release(tx: Transaction, ticket: Ticket) -> None:
    """Record that the person wants the present change to land."""
    question = _ask(tx, ticket, gate_key(ticket))
    if question.settled_at is not None and question.choice != LAND:
        question = _ask(tx, ticket, gate_key(ticket, again=True))
    if question.settled_at is None:
        questions.settle(tx, question.id, LAND)


def _ask(tx: Transaction, ticket: Ticket, key: str, said: str = "") -> Question:
    """`said`: what else the person should know."""
    return questions.ask(
        tx,
        key=key,
        kind=QuestionKind.GATE,
        project=ticket.project,
        ticket=ticket.id,
        words=f"Shall it land? It passed its checks on the target.{said}",
        deadline=tx.now + _PATIENCE,
    )


# The baseline job: runs the project's checks on the target itself. No ticket is blamed for a red baseline.


def baseline(context: Context, claim: Claim) -> None:
    project = context.project(claim.subject)
    learn(context, project)
    with context.store.write() as tx:
        claims.finish(tx, claim)


def learn(context: Context, project: ProjectContext) -> CheckedCommit:
    """Test the target and store the result, unless it moved meanwhile."""
    target = project.target
    tested = confirmed(context, project, execution.test(context, project, target, execution.project_checks(project)))
    with context.store.write() as tx:
        red_checks.remember(tx, project.id, target, tested.red)
    return tested
