"""One pass over a project's forge: its branch, its issues, the pull requests of tickets, comments that command."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from legion.domain.errors import BadInput, LegionError, NotAllowed, NotFound, StateConflict
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
from legion.domain.landing.queue import LandingTarget
from legion.forge.errors import ForgeLimited
from legion.git.hub import remote
from legion.git.hub.attribute_files import EMPTY_TREE
from legion.git.hub.lfs import lfs_files
from legion.jobs.forge import claims, notices, pulls
from legion.jobs.forge.clients import BoardActions, Visit, each, open_forge, pass_lock
from legion.jobs.landing import target
from legion.jobs.supervise.outcome import first_paths
from legion.jobs.trees import Trees
from legion.store.board import forges

# Commands in comments: `/legion retry` and the like, of people who may write to the repository, each once.
#
# A command is carried out, then recorded: one that a crash or a lost connection interrupted is carried out by the next
# pass. Each of them finds what it did before and does it no second time.


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


log = logging.getLogger(__name__)


@contextmanager
def visiting(context: Trees, project_id: int, actions: BoardActions) -> Iterator[Visit]:
    """The project's forge, with its branch fetched, for one caller at a time."""
    with pass_lock(context, project_id):
        with context.store.read() as tx:
            connection = forges.of_project(tx, project_id)
        if connection is None:
            raise NotFound("This project has no forge: add one with `legion forge add github OWNER/REPO`.")
        forge = open_forge(context, connection)
        project = context.project(project_id)
        base = forge.branch_tip(connection.branch)
        if base is not None:
            remote.fetch(project.hub, forge.remote.url, forge.remote.settings, connection.branch, base)
        if project.config.landing.target is not LandingTarget.LOCAL:
            target.fetch(context, project)
        yield Visit(context=context, project=project, connection=connection, forge=forge, actions=actions, base=base)


def sync(context: Trees, project_id: int, actions: BoardActions) -> None:
    """Look at everything once. What goes wrong is recorded with the connection, then raised."""
    try:
        with visiting(context, project_id, actions) as visit:
            _push_branch(visit)
            if visit.forge.has_pulls:
                _look(visit)
    except LegionError as trouble:
        until = trouble.until if isinstance(trouble, ForgeLimited) else None
        with context.store.write() as tx:
            forges.note_pass(tx, project_id, trouble.message, until)
        raise
    with context.store.write() as tx:
        forges.note_pass(tx, project_id, "")


def _look(visit: Visit) -> None:
    with visit.context.store.read() as tx:
        there = forges.pulls(tx, visit.project.id)
    each(
        [
            lambda: obey(visit),
            lambda: claims.take_in(visit),
            lambda: visit.actions.land_epics(visit.project.id),
            *(partial(pulls.follow, visit, one) for one in there),
            lambda: notices.inform(visit),
        ]
    )


def _push_branch(visit: Visit) -> None:
    """With the target `branch`: bring what landed to the forge, by fast-forward only."""
    project, tip = visit.project, visit.base
    if project.config.landing.target is not LandingTarget.BRANCH or tip == project.target:
        return
    if tip is not None and not project.hub.is_ancestor(tip, project.target):
        return
    large = lfs_files(project.hub, tip or EMPTY_TREE[len(project.target)], project.target)
    if large:
        raise NotAllowed(
            f"What landed holds files of Git LFS ({first_paths(large)}), whose content Legion does not upload: run "
            f"`legion collect` and `git push` in your checkout, which uploads it."
        )
    remote.fast_forward(project.hub, visit.remote.url, visit.remote.settings, visit.connection.branch, project.target)
    remote.fetch(project.hub, visit.remote.url, visit.remote.settings, visit.connection.branch, project.target)
    target.fetch(visit.context, project)
