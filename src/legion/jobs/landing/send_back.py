"""Writes down why a change does not land: the ticket goes back to its agent, or the person's commits are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from legion.domain.checks import Receipt
from legion.domain.events import EventKind
from legion.domain.tickets.ticket import Fail, Park, Recheck, Ticket, TryAgain
from legion.jobs.attempts import escalation
from legion.jobs.board import Board
from legion.jobs.checks import approvals
from legion.jobs.checks.approvals import ApprovalConcern
from legion.jobs.trees import ProjectContext
from legion.store.board import projects, tickets


def send_back(
    context: Board,
    ticket: Ticket,
    step: TryAgain | Fail | Park | Recheck,
    kind: EventKind = EventKind.SENT_BACK,
    because: Sequence[Receipt] = (),
) -> None:
    """Take the step, unless a person has moved the ticket meanwhile."""
    with context.store.write() as tx:
        if tickets.get(tx, ticket.id).version != ticket.version:
            return
        why, rule = escalation.apply_step(context, tx, ticket, step)
        data = {"why": why, "receipts": [receipt.id for receipt in because], "rule": rule.value}
        tx.record(kind, project=ticket.project, ticket=ticket.id, data=data)


def stop_for_approval(context: Board, ticket: Ticket, about: ApprovalConcern) -> bool:
    """Ask a person before the change lands, or send it back after a no. False where they have said yes."""
    with context.store.write() as tx:
        if tickets.get(tx, ticket.id).version != ticket.version:
            return True
        step = approvals.settle(tx, ticket, about, context.user.questions.answer_within)
        if step is None:
            return False
        why, rule = escalation.apply_step(context, tx, ticket, step)
        data = {"why": why, "receipts": [], "rule": rule.value}
        tx.record(EventKind.SENT_BACK, project=ticket.project, ticket=ticket.id, data=data)
    return True


def refuse_upstream(
    context: Board, project: ProjectContext, why: str, remedy: str, because: Sequence[Receipt] = ()
) -> None:
    """The person's commits do not enter the target before they commit again."""
    with context.store.write() as tx:
        record = projects.get(tx, project.id)
        refused = replace(record, person_refused=project.record.person_tip)
        proof = {"receipts": [receipt.id for receipt in because]} if because else {}
        data = {"tip": project.record.person_tip, "why": why, "remedy": remedy, **proof}
        projects.save(tx, refused, EventKind.NOT_ABSORBED, data)


def settle_upstream(context: Board, project: ProjectContext, tip: str) -> None:
    """The target holds the person's commits already, and more that landed meanwhile: nothing is left to absorb."""
    with context.store.write() as tx:
        record = projects.get(tx, project.id)
        if record.person_tip == tip:
            projects.save(tx, replace(record, person_absorbed=tip), EventKind.PERSON_SEEN, {"tip": tip})
