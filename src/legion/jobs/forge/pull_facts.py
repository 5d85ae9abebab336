"""Collects what a pull request says about its change: receipts, proven and unproven criteria, findings, cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from legion.domain.checks import CheckResult, Receipt
from legion.domain.events import EventKind
from legion.domain.forge.texts import ProvenCheck, PullFacts
from legion.domain.tickets import evidence
from legion.domain.tickets.evidence import Backing
from legion.domain.tickets.ticket import Ticket
from legion.jobs.context import Context, ProjectContext
from legion.store import events
from legion.store.board import receipts, verdicts
from legion.store.work import usage


def green(found: Iterable[Receipt], commands: Collection[str]) -> list[Receipt]:
    """The latest green receipt of each command."""
    latest = {one.command: one for one in found if one.verdict is CheckResult.GREEN and one.command in commands}
    return list(latest.values())


def gather(context: Context, project: ProjectContext, ticket: Ticket, commit: str, issue: int | None) -> PullFacts:
    tree = project.hub.tree_of(commit)
    checks = {check.name: check.command for check in project.config.checks}
    with context.store.read() as tx:
        passed = green(receipts.for_tree(tx, ticket.project, tree), {*checks.values(), *ticket.spec.proofs})
        reviews = verdicts.of_ticket(tx, ticket.id)
        reports = [one for one in events.of_ticket(tx, ticket.id) if one.kind is EventKind.TICKET_REPORTED]
        spent = usage.of_ticket(tx, ticket.id)
    weighed = evidence.weigh(ticket.spec.criteria, ticket.spec.bound, checks, passed, passed, {})
    given = [one.verdict for one in reviews if one.verdict is not None and _is_about(ticket, one.commit)]
    change = ticket.change
    return PullFacts(
        ticket=ticket.id,
        title=ticket.spec.title,
        asked=ticket.spec.text,
        issue=issue,
        done=str(reports[-1].data.get("summary") or reports[-1].data.get("text") or "") if reports else "",
        checks=[ProvenCheck(name=one.name, command=one.command, seconds=one.duration) for one in passed],
        proven=[f"{one.words} (`{one.by}`)" for one in weighed if one.backing is Backing.PROVEN],
        unproven=[one.words for one in weighed if one.backing is not Backing.PROVEN],
        findings=[f"{one.weight.value}, {one.place or 'the change'}: {one.text}" for v in given for one in v.findings],
        files=[file.path for file in project.hub.changed_files(change.base, change.commit)] if change else (),
        attempts=ticket.attempt,
        usd=spent.usd if spent.requests else None,
    )


def _is_about(ticket: Ticket, commit: str) -> bool:
    return ticket.change is not None and ticket.change.commit == commit
