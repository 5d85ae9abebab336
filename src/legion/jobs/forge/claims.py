"""Claims issues: the claim is stored, the branch is created by compare-and-swap, then the ticket is made.

Each step finds what an earlier one left behind, so a claim that a crash interrupted is completed by the next pass.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from legion.domain.errors import BadInput, NotAllowed, NotFound
from legion.domain.forge.connections import ClaimStage, IssueClaim
from legion.domain.forge.issues import ForgeIssue, claim_branch, claim_prefix, is_ours, marker, ticket_text
from legion.domain.tickets.ticket import State, Ticket
from legion.git.hub import remote
from legion.git.hub.objects import write_commit
from legion.git.hub.remote import PushResult
from legion.jobs.forge.clients import Visit, each
from legion.jobs.workspace.save import AUTHOR
from legion.store import epic_sessions
from legion.store.board import forges, projects, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.system import crash
from legion.system.crash import Point

log = logging.getLogger(__name__)


def take_in(visit: Visit) -> None:
    """Claim every issue that asks for it, and complete claims that were interrupted."""
    _renew(visit)
    with visit.context.store.read() as tx:
        begun = {one.number: one for one in forges.claims(tx, visit.project.id, [ClaimStage.CLAIMING])}
        known = {one.number: one for one in forges.claims(tx, visit.project.id, ClaimStage)}
    each([*(partial(_complete, visit, one) for one in begun.values()), lambda: _claim_new(visit, known)])


def _claim_new(visit: Visit, known: Mapping[int, IssueClaim]) -> None:
    rule = visit.connection.intake
    if not rule.label:
        return
    wanted = [issue for issue in visit.forge.issues(rule.label) if rule.takes(issue)]
    fresh = [issue for issue in wanted if issue.number not in known]
    lost = [issue for issue in wanted if issue.number in known and known[issue.number].stage is ClaimStage.TAKEN]
    each(partial(claim, visit, issue, {}) for issue in (*fresh, *_free_again(visit, lost)))


def _renew(visit: Visit) -> None:
    """Claim issues again whose ticket was stopped, and then retried by a person."""
    with visit.context.store.read() as tx:
        released = forges.claims(tx, visit.project.id, [ClaimStage.RELEASED])
        there = [(one, work_of(tx, visit.project.id, one.ticket)) for one in released if one.ticket is not None]
    for one, work in there:
        if work is None or work.ended:
            continue
        if _won(visit, one):
            _settle(visit, replace(one, wrote=""), ClaimStage.CLAIMED, "")
        else:
            _settle(visit, one, ClaimStage.TAKEN, "another branch claims it")
            visit.actions.stop(work.ticket.id, f"issue {one.number} is claimed by another branch now")


def _free_again(visit: Visit, issues: Iterable[ForgeIssue]) -> list[ForgeIssue]:
    """Those whose branch of another claim is gone."""
    there = list(issues)
    if not there:
        return []
    branches = remote.tips(visit.remote.url, visit.remote.settings, "issue-*")
    return [one for one in there if not any(name.startswith(claim_prefix(one.number)) for name in branches)]


def claim(visit: Visit, issue: ForgeIssue, options: Mapping[str, object]) -> IssueClaim:
    """Claim an issue and make its ticket. The returned claim says whether that succeeded."""
    with visit.context.store.write() as tx:
        before = forges.claim_of(tx, visit.project.id, issue.number)
        if before is not None and before.stage in (ClaimStage.CLAIMING, ClaimStage.CLAIMED):
            one = before
        else:
            one = _new(visit, issue, options, tx.now, before)
            forges.claim(tx, one)
    crash.reach(Point.FORGE_BEFORE_CLAIM)
    return _complete(visit, one, issue) if one.stage is ClaimStage.CLAIMING else one


def _new(
    visit: Visit, issue: ForgeIssue, options: Mapping[str, object], now: float, before: IssueClaim | None
) -> IssueClaim:
    """With a commit of its own: the branch then shows whose claim it is."""
    parent = visit.base or visit.project.target
    message = f"Claim issue {issue.number}\n\nLegion-Claim: {visit.connection.identity}\n"
    commit = write_commit(
        visit.project.hub,
        tree=visit.project.hub.tree_of(parent),
        parents=(parent,),
        author=AUTHOR.stamp(int(now)),
        committer=AUTHOR.stamp(int(now)),
        message=message.encode(),
    )
    visit.project.hub.keep(f"claims/{issue.number}", commit)
    return IssueClaim(
        project=visit.project.id,
        number=issue.number,
        ticket=None,
        stage=ClaimStage.CLAIMING,
        branch=claim_branch(issue.number, issue.title),
        claim=commit,
        comment=before.comment if before is not None else None,
        request=options,
        at=now,
    )


def _complete(visit: Visit, one: IssueClaim, known: ForgeIssue | None = None) -> IssueClaim:
    issue = known or visit.forge.issue(one.number)
    if issue is None or not issue.open:
        return _settle(visit, one, ClaimStage.RELEASED, "the issue is closed or gone")
    if not _won(visit, one):
        log.info("issue %d of %s is claimed elsewhere", one.number, visit.connection.name)
        return _settle(visit, one, ClaimStage.TAKEN, "another branch claims it")
    crash.reach(Point.FORGE_AFTER_CLAIM)
    comments = [
        comment
        for comment in visit.forge.comments(one.number)
        if not is_ours(comment.body) and visit.forge.may_write(comment.author)
    ]

    def record(tx: Transaction, ticket: int) -> None:
        forges.claim(tx, replace(one, stage=ClaimStage.CLAIMED, ticket=ticket))

    try:
        ticket = visit.actions.dispatch(
            visit.project.id,
            issue,
            ticket_text(issue, comments),
            one.request,
            request=f"forge:{visit.connection.identity}:{one.number}:{one.claim}",
            also=record,
        )
    except (BadInput, NotAllowed, NotFound) as refused:
        _give_back(visit, one, refused.message)
        raise
    return replace(one, stage=ClaimStage.CLAIMED, ticket=ticket)


def _won(visit: Visit, one: IssueClaim) -> bool:
    """Create the branch where no other claims the issue. Titles differ, so branches of other names count, too."""
    url, settings = visit.remote.url, visit.remote.settings
    pattern = f"{claim_prefix(one.number)}*"
    with visit.context.store.read() as tx:
        pull = forges.pull_of(tx, one.ticket) if one.ticket is not None else None
    ours = {one.claim, pull.pushed} if pull is not None else {one.claim}

    def others() -> set[str]:
        there = remote.tips(url, settings, pattern)
        return {name for name, tip in there.items() if name != one.branch or tip not in ours}

    if others():
        return False
    if pull is not None and pull.pushed and one.branch in remote.tips(url, settings, one.branch):
        return True
    pushed = remote.push(visit.project.hub, url, settings, one.branch, one.claim, expected=None)
    if pushed is not PushResult.PUSHED:
        return False
    if others():
        remote.delete(visit.project.hub, url, settings, one.branch, expected=one.claim)
        return False
    return True


def _give_back(visit: Visit, one: IssueClaim, why: str) -> None:
    """No ticket can be made of it as it was asked for. The reason stays here: it may name files of the person."""
    mark = marker(f"issue refused={one.number}")
    text = "Legion could not make a ticket of this issue. The person who runs it sees why."
    comment = visit.forge.say(one.number, f"{text}\n\n{mark}", known=one.comment, mark=mark)
    url, settings = visit.remote.url, visit.remote.settings
    remote.delete(visit.project.hub, url, settings, one.branch, expected=one.claim)
    _settle(visit, replace(one, comment=comment), ClaimStage.RELEASED, why)


def _settle(visit: Visit, one: IssueClaim, stage: ClaimStage, why: str) -> IssueClaim:
    settled = replace(one, stage=stage, why=why)
    with visit.context.store.write() as tx:
        forges.claim(tx, settled)
    return settled


# The work on an issue: its ticket, or the ticket that lands the epic's branch on which that one landed.


@dataclass(frozen=True, kw_only=True)
class IssueWork:
    ticket: Ticket
    """The one that was made from the issue."""
    lander: Ticket
    """The one whose landing completes the work; mostly the same."""
    waits_on: str = ""
    """The branch of an epic that has the change, and that has not been offered yet."""

    @property
    def ended(self) -> bool:
        return self.lander.ended and not self.waits_on


def work_of(tx: ReadTransaction, parent: int, number: int) -> IssueWork | None:
    """The work of a ticket that was made from an issue of the project `parent`. None: a person dropped it."""
    if tickets.dropped(tx, [number]):
        return None
    ticket = tickets.get(tx, number)
    if ticket.project == parent or ticket.state is not State.DONE:
        return IssueWork(ticket=ticket, lander=ticket)
    session = projects.get(tx, ticket.project)
    lander = epic_sessions.ticket_of(tx, parent, session)
    if lander is None:
        waits = session.removed_at is None or epic_sessions.ends_to_land(tx, parent, session)
        return IssueWork(ticket=ticket, lander=ticket, waits_on=session.branch if waits else "")
    return None if tickets.dropped(tx, [lander]) else IssueWork(ticket=ticket, lander=tickets.get(tx, lander))
