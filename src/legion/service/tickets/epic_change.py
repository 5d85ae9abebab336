"""Lands the branch of an epic as one change: by hand, and by itself where an epic is one pull request."""

from __future__ import annotations

import logging

from legion.domain.errors import LegionError
from legion.domain.landing.queue import PullUnit
from legion.domain.projects import is_session_of_epic
from legion.domain.tickets.ticket import State
from legion.jobs.trees import Trees
from legion.service.projects import epic_branches
from legion.service.tickets.dispatch import create
from legion.service.tickets.prepare import prepare
from legion.store import epic_sessions
from legion.store.board import projects, tickets
from legion.wire.dispatch import Dispatch
from legion.wire.plans import NamedEpic
from legion.wire.tickets import Acted

log = logging.getLogger(__name__)

_LANDS = {State.DONE, State.STOPPED}
"""States of tickets with which a branch lands by itself. A person decides about one that failed."""


def land(context: Trees, wanted: NamedEpic) -> Acted:
    """Land it now, or record that it lands as soon as it may. May be repeated: the branch has one ticket."""
    parent, session = epic_branches.to_land(context, wanted.cwd, wanted.epic)
    waits = epic_branches.waits_for(context, parent, session, wanted.epic)
    if waits:
        with context.store.write() as tx:
            epic_sessions.want(tx, parent.id, session)
        return Acted(tickets=[], message=f"Epic {wanted.epic} lands by itself as one change when {waits}.")
    whole = epic_branches.whole(context, wanted.cwd, wanted.epic)

    prepared = prepare(context, Dispatch(cwd=whole.parent.worktrees, tickets=[whole.new], request=whole.request))
    with context.store.write() as tx:
        made = create(tx, prepared)
        ids = made.answer.ids
        if made.new:
            whole.propose(tx, ids[0])
            epic_sessions.want_no_more(tx, parent.id, session)
    return Acted(tickets=ids, message=f"Ticket {ids[0]} lands epic {wanted.epic} as one change.")


def land_wanted(context: Trees) -> None:
    """Land every epic that a person wanted to land and that had to wait. One query where there is none."""
    with context.store.read() as tx:
        there = epic_sessions.wanted(tx)
    for parent, session in there:
        try:
            _land_wanted(context, parent, session)
        except LegionError as trouble:
            log.warning("an epic could not land by itself, will retry: %s", trouble)


def _land_wanted(context: Trees, parent: int, session: int) -> None:
    with context.store.read() as tx:
        record, ended = projects.get(tx, parent), projects.get(tx, session)
        open_or_failed = set(tickets.counts(tx, session)) - _LANDS
        names = [name for name in epic_sessions.names(tx, session) if is_session_of_epic(ended.session, name)]
        gone = ended.removed_at is not None and not epic_sessions.ends_to_land(tx, parent, ended)
    if gone or not names:
        with context.store.write() as tx:
            epic_sessions.want_no_more(tx, parent, ended)
    elif not open_or_failed and not epic_branches.waits_for(context, record, ended, names[0]):
        land(context, NamedEpic(cwd=record.worktrees, epic=names[0]))


def land_ready(context: Trees, project: int) -> None:
    """With `landing.pulls = "epic"`: land every epic whose tickets are all done."""
    with context.store.read() as tx:
        parent = projects.get(tx, project)
    config = context.project_of(parent).config
    if config.landing.pulls is not PullUnit.EPIC:
        return
    with context.store.read() as tx:
        names = epic_branches.ready(tx, parent, config.project.depends_on)
    for name in names:
        land(context, NamedEpic(cwd=parent.worktrees, epic=name))
