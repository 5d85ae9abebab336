"""Keeps an issue informed of its ticket: one comment that is edited, and a label while work is in progress."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from legion.domain.forge.connections import ClaimStage, IssueClaim
from legion.domain.forge.issues import WORKING, ForgeIssue, inert, marker
from legion.domain.forge.pulls import PullStage
from legion.domain.forge.texts import IssueNews, issue_comment, issue_key, question_text
from legion.domain.landing.queue import LandingTarget
from legion.domain.tickets.ticket import State
from legion.git.hub import remote
from legion.jobs.forge.claims import IssueWork, work_of
from legion.jobs.forge.clients import Visit
from legion.store.board import forges, questions
from legion.store.database.transactions import ReadTransaction

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
        if one.ticket is None:
            continue
        issue = visit.forge.issue(one.number)
        _stop_with_issue(visit, one, one.ticket, issue)
        if issue is None:
            _release(visit, one, "the issue was deleted")
        else:
            _inform(visit, one, one.ticket, issue)


def _stop_with_issue(visit: Visit, one: IssueClaim, number: int, issue: ForgeIssue | None) -> None:
    """A person who closes or deletes the issue stops its ticket."""
    with visit.context.store.read() as tx:
        work = work_of(tx, visit.project.id, number)
        pull = forges.pull_of(tx, work.lander.id) if work is not None else None
    merged = pull is not None and pull.stage in (PullStage.MERGED, PullStage.LANDED)
    if issue is not None and (issue.open or merged):
        return
    if work is not None and not work.ticket.ended and not merged:
        how = "deleted" if issue is None else "closed"
        visit.actions.stop(number, f"issue {one.number} was {how}")


def _inform(visit: Visit, one: IssueClaim, number: int, issue: ForgeIssue) -> None:
    with visit.context.store.read() as tx:
        work = work_of(tx, visit.project.id, number)
        news = _news(tx, work) if work is not None else IssueNews(ticket=number, state="dropped")
    body, ended = issue_comment(news), work is None or work.ended
    if digest(body) != one.wrote:
        comment = visit.forge.say(one.number, body, known=one.comment, mark=marker(issue_key(number)))
        if (WORKING in issue.labels) is ended:
            visit.forge.set_label(one.number, WORKING, there=not ended)
        one = replace(one, comment=comment, wrote=digest(body))
        with visit.context.store.write() as tx:
            forges.claim(tx, one)
    if work is not None and work.lander.landed and visit.project.config.landing.target is LandingTarget.BRANCH:
        if visit.base is None or not visit.project.hub.is_ancestor(work.lander.landed, visit.base):
            # The next pass pushes it.
            return
        if issue.open:
            visit.forge.close_issue(one.number)
    if ended:
        _release(visit, one, work.lander.state.value if work is not None else "dropped")


def _news(tx: ReadTransaction, work: IssueWork) -> IssueNews:
    ticket, lander = work.ticket, work.lander
    pull = forges.pull_of(tx, lander.id)
    state = _STATES.get(lander.state, lander.state.value)
    lines = []
    if work.waits_on:
        state = f"done on the branch {work.waits_on}"
        lines.append(f"It lands with the other tickets of epic {ticket.spec.epic}.")
    elif lander != ticket:
        lines.append(f"It is part of epic {lander.spec.epic}, which ticket {lander.id} lands.")
    if pull is not None and pull.url:
        lines.append(f"Pull request: {pull.url}")
    if lander.state is State.DONE and lander.landed and not work.waits_on:
        lines.append(f"It landed as {lander.landed[:12]}.")
    if lander.state in (State.FAILED, State.STOPPED) and lander.reason:
        lines.append(f"Why: {inert(lander.reason)}")
    asked = (ticket.id,) if lander == ticket else (ticket.id, lander.id)
    lines += [question_text(one) for number in asked for one in questions.open_ones(tx, ticket=number)]
    return IssueNews(ticket=ticket.id, state=state, lines=lines)


def _release(visit: Visit, one: IssueClaim, why: str) -> None:
    """The branch goes only while it holds nothing but the claim."""
    remote.delete(
        visit.project.hub, visit.remote.url, visit.remote.settings, one.branch, expected=one.claim
    )  # a branch with work on it is at another commit and stays
    with visit.context.store.write() as tx:
        forges.claim(tx, replace(one, stage=ClaimStage.RELEASED, why=why))
