"""The gate of the merge queue: a change that passed everything waits until the person lands it.

A gated change is tested alone on the target, as if it landed. If it is green its ticket is parked with one question.
The person's yes is the settled question: it counts for exactly this change, which then takes the usual way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from legion.domain.checks import Receipt
from legion.domain.events import EventKind
from legion.domain.landing.queue import gate_key, gate_of
from legion.domain.questions import LAND, Question, QuestionKind, SettledBy
from legion.domain.review.additions import warning
from legion.domain.review.policy import RiskLevel, risk_level, risks
from legion.domain.rules import Rule
from legion.domain.scheduling.decide import Claim
from legion.domain.text import count
from legion.domain.tickets.spec import LandingGate
from legion.domain.tickets.ticket import Change, Park, ParkReason, Ticket
from legion.jobs.checks import approvals, execution, red_checks, reviewers
from legion.jobs.checks.execution import CheckedCommit
from legion.jobs.checks.job import confirmed
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext, Trees
from legion.store import epic_sessions
from legion.store.board import questions, tickets, verdicts
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import claims

_PATIENCE = 30 * 86_400.0
"""Seconds until the question leaves the inbox; the change still waits after that."""


def waits(tx: ReadTransaction, project: ProjectContext, ticket: Ticket) -> bool:
    """Whether the ticket's change may not land before the person says so."""
    if ticket.change is None or _mode(tx, project, ticket) is LandingGate.AUTO:
        return False
    asked = (questions.by_key(tx, gate_key(ticket)), questions.by_key(tx, gate_key(ticket, again=True)))
    return not any(one is not None and one.choice == LAND for one in asked)


def _mode(tx: ReadTransaction, project: ProjectContext, ticket: Ticket) -> LandingGate:
    epic = epic_sessions.gates(tx).get((project.id, ticket.spec.epic)) if ticket.spec.epic else None
    return gate_of(ticket, epic=epic, project=project.config.landing.gate)


def stop_for_person(context: Trees, ticket: Ticket, because: Sequence[Receipt]) -> None:
    """Park the ticket and ask, unless a person has moved it or released it meanwhile, or its gate lets changes of low
    risk pass and this is one. `because`: what it passed.
    """
    assert ticket.change is not None, "it was tested"
    project = context.project(ticket.project)
    hidden = warning(approvals.find_hidden(project, ticket.change))
    scope, watched = reviewers.change_scope(project, ticket, ticket.change), project.config.review.paths
    level = risk_level(scope, watched)
    known = _facts(project, ticket.change, because)
    plain = "no rule speaks against it" if level is RiskLevel.LOW else f"it changes {scope.lines} lines"
    known["risk"] = f"{level.value}: {'; '.join(risks(scope, watched)) or plain}"
    with context.store.write() as tx:
        current = tickets.get(tx, ticket.id)
        if current.version != ticket.version:
            return
        mine = [one for one in verdicts.of_ticket(tx, ticket.id) if one.commit == ticket.change.commit]
        if read := [(one.reviewer, one.verdict) for one in mine if one.verdict]:
            known["reviews"] = "; ".join(f"{by} {one.ruling.value}, {len(one.findings)} found" for by, one in read)
        if level is RiskLevel.LOW and not hidden and _mode(tx, project, current) is LandingGate.RISK:
            _release(tx, ticket, known["risk"], SettledBy.RULE)
            return
        question = _ask(tx, ticket, gate_key(ticket), f" {hidden}".rstrip(), known)
        if question.choice == LAND:
            return
        why = "it passed everything and waits for you"
        tickets.move(tx, ticket.id, Park(ParkReason.QUESTION, why), rule=Rule.GATE)
        data = {"receipts": [one.id for one in because], "rule": Rule.GATE.value}
        tx.record(EventKind.AT_GATE, project=ticket.project, ticket=ticket.id, data=data)


def _facts(project: ProjectContext, change: Change, because: Sequence[Receipt]) -> dict[str, str]:
    """What a person decides by, on the spot."""
    files = project.hub.changed_files(change.base, change.commit)
    added, gone = (sum(getattr(one, name) or 0 for one in files) for name in ("additions", "deletions"))
    known = {"change": f"{count(len(files), 'file')}, +{added} -{gone}"}
    ran = [f"{one.name} {one.verdict.value} in {one.duration:.1f} s" for one in because]
    known["checks"] = "; ".join(ran) or "none: it lands unchecked"
    return known


def release(tx: Transaction, ticket: Ticket) -> None:
    """Record that the person wants the present change to land."""
    _release(tx, ticket, "", SettledBy.PERSON)


def _release(tx: Transaction, ticket: Ticket, why: str, by: SettledBy) -> None:
    question = _ask(tx, ticket, gate_key(ticket), silent=True)
    if question.settled_at is not None and question.choice != LAND:
        question = _ask(tx, ticket, gate_key(ticket, again=True), silent=True)
    if question.settled_at is None:
        questions.settle(tx, question.id, LAND, why, by=by)


def _ask(
    tx: Transaction,
    ticket: Ticket,
    key: str,
    said: str = "",
    known: Mapping[str, str] | None = None,
    *,
    silent: bool = False,
) -> Question:
    """`said`: what else the person should know."""
    return questions.ask(
        tx,
        key=key,
        kind=QuestionKind.GATE,
        project=ticket.project,
        ticket=ticket.id,
        words=f"Shall it land?{said}",
        facts=known,
        deadline=tx.now + _PATIENCE,
        silent=silent,
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
