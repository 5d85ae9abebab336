"""Commands in comments: `/legion retry` and the like, of people who may write to the repository, each once.

A command is carried out, then recorded: one that a crash or a lost connection interrupted is carried out by the next
pass. Each of them finds what it did before and does it no second time.
"""

from __future__ import annotations

import logging
from functools import partial

from legion.domain.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.domain.forge.issues import (
    Commanded,
    CommentCommand,
    ForgeComment,
    answer_in,
    command_in,
    is_ours,
    ticket_text,
)
from legion.domain.forge.pulls import Remark
from legion.jobs.forge import claims
from legion.jobs.forge.visit import Visit, each
from legion.store.board import forges

log = logging.getLogger(__name__)


def obey(visit: Visit) -> None:
    """Carry out new commands. Those that were there before the forge was added are only recorded."""
    first = visit.connection.synced_at is None
    each(partial(_obey, visit, one, first=first) for one in reversed(visit.forge.recent_comments()))


def _obey(visit: Visit, comment: ForgeComment, *, first: bool) -> None:
    wanted = command_in(comment.body)
    if wanted is None or comment.reply_to is None or is_ours(comment.body):
        return
    if not first and not visit.forge.may_write(comment.author):
        return
    ticket = _ticket_of_new(visit, comment, comment.reply_to)
    if ticket is None:
        return
    try:
        if not first:
            _carry_out(visit, wanted, comment, comment.reply_to, ticket)
    except (BadInput, NotAllowed, NotFound, StateConflict) as refused:
        log.warning("the command of %s on issue %d failed: %s", comment.author, comment.reply_to, refused)
    with visit.context.store.write() as tx:
        forges.take(tx, visit.project.id, ticket, [Remark(source=_source(comment), text="")])


def _source(comment: ForgeComment) -> str:
    return f"command:{comment.id}"


def _ticket_of_new(visit: Visit, comment: ForgeComment, issue: int) -> int | None:
    """The issue's ticket, 0 without one; None where the command was carried out already."""
    with visit.context.store.read() as tx:
        if forges.known_sources(tx, visit.project.id, [_source(comment)]):
            return None
        claim = forges.claim_of(tx, visit.project.id, issue)
        by_pull = [one.ticket for one in forges.pulls(tx, visit.project.id) if one.number == issue]
    return claim.ticket if claim is not None and claim.ticket else next(iter(by_pull), 0)


def _carry_out(visit: Visit, wanted: Commanded, comment: ForgeComment, number: int, ticket: int) -> None:
    if wanted.command is CommentCommand.PLAN or not ticket:
        _start(visit, wanted, comment, number)
    elif wanted.command is CommentCommand.STOP:
        visit.actions.stop(ticket, "a comment at the forge asked for it")
    elif wanted.command is CommentCommand.SPLIT:
        visit.actions.split(ticket)
    elif wanted.command is CommentCommand.ANSWER:
        visit.actions.answer(ticket, answer_in(wanted.text))
    else:
        visit.actions.retry(ticket, wanted.text)


def _start(visit: Visit, wanted: Commanded, comment: ForgeComment, number: int) -> None:
    issue = visit.forge.issue(number)
    if issue is None or not issue.open:
        return
    if wanted.command is CommentCommand.PLAN:
        goal = f"{wanted.text}\n\n{ticket_text(issue)}".strip()
        visit.actions.plan(visit.project.id, goal, request=f"forge-plan:{visit.connection.identity}:{comment.id}")
    elif wanted.command is CommentCommand.RETRY:
        claims.claim(visit, issue, {"context": wanted.text} if wanted.text else {})
