"""Keeps an issue informed of its ticket: one comment that is edited, and a label while work is in progress."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from legion.domain.forge.connections import ClaimStage, IssueClaim, TicketPull
from legion.domain.forge.issues import WORKING, marker
from legion.domain.forge.pulls import PullStage
from legion.domain.forge.questions import question_text
from legion.domain.forge.texts import IssueNews, issue_comment, issue_key
from legion.domain.tickets.ticket import State, Ticket
from legion.git.hub import remote
from legion.jobs.forge.visit import Visit
from legion.store.board import forges, questions, tickets
from legion.store.database.transactions import ReadTransaction
from legion.system import crash
from legion.system.crash import Point

_STATES = {
    State.QUEUED: "waiting to start",
    State.WORKING: "being worked on",
    State.CHECKING: "being checked",
    State.REVIEWING: "being reviewed",
    State.LANDING: "being checked",
    State.PARKED: "waiting",
    State.DONE: "done",
    State.FAILED: "given up",
    State.STOPPED: "stopped",
}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def inform(visit: Visit) -> None:
    """Bring comment and label of every claimed issue up to date. A claim whose ticket ended is released."""
    with visit.context.store.read() as tx:
        there = forges.claims(tx, visit.project.id, [ClaimStage.CLAIMED])
    for one in there:
        if one.ticket is not None and not _stop_with_issue(visit, one, one.ticket):
            _inform(visit, one, one.ticket)


def _stop_with_issue(visit: Visit, one: IssueClaim, number: int) -> bool:
    """True where a person deleted the issue: its ticket stops, and there is nothing left to inform."""
    with visit.context.store.read() as tx:
        ticket, pull = tickets.get(tx, number), forges.pull_of(tx, number)
    issue = visit.forge.issue(one.number)
    merged = pull is not None and pull.stage in (PullStage.MERGED, PullStage.LANDED)
    if issue is not None and (issue.open or merged):
        return False
    if not ticket.ended and not merged:
        how = "deleted" if issue is None else "closed"
        visit.actions.stop(number, f"issue {one.number} was {how}")
    if issue is None:
        _release(visit, one, "the issue was deleted")
    return issue is None


def _inform(visit: Visit, one: IssueClaim, number: int) -> None:
    with visit.context.store.read() as tx:
        ticket, pull = tickets.get(tx, number), forges.pull_of(tx, number)
        body = issue_comment(_news(tx, ticket, pull))
    if digest(body) != one.wrote:
        comment = visit.forge.say(one.number, body, known=one.comment, mark=marker(issue_key(number)))
        crash.reach(Point.FORGE_AFTER_SAY)
        visit.forge.set_label(one.number, WORKING, there=not ticket.ended)
        one = replace(one, comment=comment, wrote=digest(body))
        with visit.context.store.write() as tx:
            forges.claim(tx, one)
    if ticket.ended:
        _release(visit, one, ticket.state.value)


def _news(tx: ReadTransaction, ticket: Ticket, pull: TicketPull | None) -> IssueNews:
    lines = []
    if pull is not None and pull.url:
        lines.append(f"Pull request: {pull.url}")
    if ticket.state is State.DONE and ticket.landed:
        lines.append(f"It landed as {ticket.landed[:12]}.")
    if ticket.state in (State.FAILED, State.STOPPED) and ticket.reason:
        lines.append(f"Why: {ticket.reason}")
    lines += [question_text(one) for one in questions.open_ones(tx, ticket=ticket.id)]
    return IssueNews(ticket=ticket.id, state=_STATES.get(ticket.state, ticket.state.value), lines=lines)


def _release(visit: Visit, one: IssueClaim, why: str) -> None:
    """The branch goes only while it holds nothing but the claim."""
    remote.delete(
        visit.project.hub, visit.remote.url, visit.remote.settings, one.branch, expected=one.claim
    )  # a branch with work on it is at another commit and stays
    with visit.context.store.write() as tx:
        forges.claim(tx, replace(one, stage=ClaimStage.RELEASED, why=why))
