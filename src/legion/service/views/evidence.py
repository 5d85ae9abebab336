"""The evidence on a ticket's page: what proves each criterion, weakened tests, proof by reversal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from legion.domain.checks import HELD_OUT, Receipt
from legion.domain.events import Event, EventKind
from legion.domain.review.path_patterns import matches
from legion.domain.review.protected_files import deciding
from legion.domain.review.verdicts import ReviewRequest
from legion.domain.tickets import evidence
from legion.domain.tickets.evidence import Backing
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.checks import approvals
from legion.jobs.trees import ProjectContext
from legion.service.shared.fragments import shaped
from legion.store.board.receipts import for_tree
from legion.store.database.transactions import ReadTransaction
from legion.wire.ticket_pages import EvidenceLine, HiddenCharacterLine, ReversalLine, UnprovenLine, WeakeningLine


def weakened(project: ProjectContext, ticket: Ticket) -> list[WeakeningLine]:
    """Signs that its change weakens tests, whether or not it was allowed to touch them."""
    if ticket.change is None or project.record.removed_at is not None:
        return []
    return [shaped(WeakeningLine, one) for one in approvals.find_weakenings(project, ticket, ticket.change)]


def hidden(project: ProjectContext, ticket: Ticket) -> list[HiddenCharacterLine]:
    """Characters that its change adds and a screen does not show."""
    if ticket.change is None or project.record.removed_at is not None:
        return []
    return [shaped(HiddenCharacterLine, one) for one in approvals.find_hidden(project, ticket.change)]


def lines(
    project: ProjectContext,
    ticket: Ticket,
    history: Sequence[Event],
    receipts: Sequence[Receipt],
    read: Sequence[ReviewRequest],
    changed: Sequence[str],
) -> list[EvidenceLine]:
    """`receipts` are all that the page shows, `read` the reviews of its changes, `changed` its paths."""
    checks = {check.name: check.command for check in project.config.checks}
    there = ticket.spec.checkpoint and ticket.landed is not None and project.record.removed_at is None
    tree = project.hub.tree_of(ticket.landed) if there and ticket.landed else ""
    landed_on = _landed_on(ticket, history, receipts, tree)
    since = _attempt_started(history)
    tried = reversal(history)
    idle = tried.idle if tried else []
    fresh = [receipt for receipt in receipts if receipt.made_at >= since]
    return [
        EvidenceLine(
            criterion=one.words,
            backing=one.backing.value,
            by=one.by,
            commit=one.receipt.commit if one.receipt else None,
            idle=one.by in idle,
            own=one.backing is not Backing.READ and _changed_the_proof(changed, one.by),
        )
        for one in evidence.weigh(
            ticket.spec.criteria, ticket.spec.bound, checks, fresh, landed_on, _reviewed(ticket, read)
        )
    ]


def _changed_the_proof(changed: Sequence[str], command: str) -> bool:
    named = deciding([command])
    return any(matches(path, named, any_case=True) for path in changed)


def _reviewed(ticket: Ticket, read: Sequence[ReviewRequest]) -> dict[int, str]:
    """By a criterion's index, what the last reviewer of the present change wrote if it found the criterion met."""
    given = [one for one in read if ticket.change is not None and one.commit == ticket.change.commit and one.verdict]
    judgements = [(one.reviewer, judged) for one in given if one.verdict is not None for judged in one.verdict.criteria]
    last = {judged.number - 1: (reader, judged) for reader, judged in judgements}
    return {place: f"{reader}: {judged.why or 'met'}" for place, (reader, judged) in last.items() if judged.met}


def reversal(history: Sequence[Event]) -> ReversalLine | None:
    """The result for the latest attempt's change; None if there is none."""
    since = _attempt_started(history)
    found = [event.data for event in history if event.kind is EventKind.REVERSED and event.at >= since]
    if not found:
        return None
    data: Any = found[-1]
    return ReversalLine(
        idle=list(data["idle"]),
        unproven=[UnprovenLine(**one) for one in data["unproven"]],
        tried=data["tried"],
        left=data["left"],
    )


def confirmed(tx: ReadTransaction, project: ProjectContext, ticket: Ticket) -> tuple[Receipt, ...]:
    """The receipts that a done checkpoint is based on: of its commands on its tree, from any ticket."""
    if not ticket.spec.checkpoint or ticket.landed is None or project.record.removed_at is not None:
        return ()
    tree = project.hub.tree_of(ticket.landed)
    commands = {*(check.command for check in project.config.checks), *ticket.spec.proofs}
    names = {f"{HELD_OUT}{name}" for name in ticket.spec.acceptance}
    return tuple(
        receipt
        for receipt in for_tree(tx, ticket.project, tree)
        if receipt.command in commands or receipt.name in names
    )


def _landed_on(
    ticket: Ticket, history: Sequence[Event], receipts: Sequence[Receipt], tree: str
) -> list[Receipt] | None:
    """The receipts with which it landed, or with which a checkpoint is done; None before."""
    if ticket.state is not State.DONE:
        return None
    if ticket.spec.checkpoint:
        return [receipt for receipt in receipts if receipt.tree == tree]
    named = [event.data.get("receipts") for event in history if event.kind is EventKind.LANDED]
    ids = {number for numbers in named if isinstance(numbers, list) for number in numbers}
    return [receipt for receipt in receipts if receipt.id in ids]


def _attempt_started(history: Sequence[Event]) -> float:
    """When the latest attempt started: older results are about an earlier change."""
    started = [event.at for event in history if event.kind is EventKind.RUN_STARTED and not event.data.get("role")]
    return max(started, default=0.0)
