"""Collects what a pull request says about its change: receipts, proven and unproven criteria, findings, cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from legion.domain.checks import CheckResult, Receipt
from legion.domain.events import EventKind
from legion.domain.forge.texts import ProvenCheck, PullFacts
from legion.domain.scheduling.usage import total
from legion.domain.tickets import evidence
from legion.domain.tickets.evidence import Backing, criteria_of
from legion.domain.tickets.ticket import Ticket
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.store import epic_sessions, events
from legion.store.board import forges, receipts, tickets, verdicts
from legion.store.database.transactions import ReadTransaction
from legion.store.work import usage


def green(found: Iterable[Receipt], commands: Collection[str]) -> list[Receipt]:
    """The latest green receipt of each command."""
    latest = {one.command: one for one in found if one.verdict is CheckResult.GREEN and one.command in commands}
    return list(latest.values())


def gather(context: Board, project: ProjectContext, ticket: Ticket, commit: str) -> PullFacts:
    tree = project.hub.tree_of(commit)
    checks = {check.name: check.command for check in project.config.checks}
    with context.store.read() as tx:
        passed = green(receipts.for_tree(tx, ticket.project, tree), {*checks.values(), *ticket.spec.proofs})
        reviews = verdicts.of_ticket(tx, ticket.id)
        reports = [one for one in events.of_ticket(tx, ticket.id) if one.kind is EventKind.TICKET_REPORTED]
        parts = _parts(tx, ticket)
        claims = [forges.claim_of_ticket(tx, one.id) for one in (ticket, *parts)]
        reviews = (*reviews, *(one for part in parts for one in verdicts.of_ticket(tx, part.id)))
        spent = total(usage.of_ticket(tx, one.id) for one in (ticket, *parts))
    weighed = evidence.weigh(ticket.spec.criteria, ticket.spec.bound, checks, passed, passed, {})
    about = {one.change.commit for one in (ticket, *parts) if one.change is not None}
    given = [one.verdict for one in reviews if one.verdict is not None and one.commit in about]
    open_criteria = [f"{words} (ticket {part.id})" for part in parts for words in _unproven(part)]
    change = ticket.change
    return PullFacts(
        ticket=ticket.id,
        title=ticket.spec.title,
        asked=ticket.spec.text,
        issues=[claim.number for claim in claims if claim is not None],
        done=str(reports[-1].data.get("summary") or reports[-1].data.get("text") or "") if reports else "",
        checks=[ProvenCheck(name=one.name, command=one.command, seconds=one.duration) for one in passed],
        proven=[f"{one.words} (`{one.by}`)" for one in weighed if one.backing is Backing.PROVEN],
        unproven=[*(one.words for one in weighed if one.backing is not Backing.PROVEN), *open_criteria],
        findings=[f"{one.weight.value}, {one.place or 'the change'}: {one.text}" for v in given for one in v.findings],
        files=[file.path for file in project.hub.changed_files(change.base, change.commit)] if change else (),
        attempts=ticket.attempt,
        usd=spent.usd if spent.requests else None,
        parts=[f"ticket {part.id}: {part.spec.title}" for part in parts],
    )


def _parts(tx: ReadTransaction, ticket: Ticket) -> tuple[Ticket, ...]:
    """The landed tickets of the epic whose branch this ticket lands."""
    session = epic_sessions.session_behind(tx, ticket.project, ticket.id, ticket.spec.epic)
    found = tickets.of_epic(tx, session.id, ticket.spec.epic) if session is not None else ()
    return tuple(one for one in found if one.landed is not None)


def _unproven(part: Ticket) -> list[str]:
    proven = {one.criterion for one in part.spec.bound}
    return [words for place, words in enumerate(criteria_of(part.spec.criteria)) if place not in proven]
