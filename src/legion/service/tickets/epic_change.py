"""Lands the branch of an epic as one change: by hand, and by itself where an epic is one pull request."""

from __future__ import annotations

from legion.domain.landing.destination import PullUnit
from legion.jobs.context import Context
from legion.service.projects import epic_branches
from legion.service.tickets.dispatch import dispatch
from legion.store.board import projects
from legion.store.database.transactions import Transaction
from legion.wire.sessions import EpicBranch
from legion.wire.tickets import Acted, Dispatch, Dispatched


def land(context: Context, wanted: EpicBranch) -> Acted:
    """May be repeated: the branch is collected once, and has one ticket."""
    whole = epic_branches.whole(context, wanted.cwd, wanted.epic)

    def propose(tx: Transaction, made: Dispatched) -> None:
        whole.propose(tx, made.ids[0])

    request = Dispatch(cwd=whole.parent.worktrees, tickets=[whole.new], request=whole.request)
    ids = dispatch(context, request, also=propose).ids
    return Acted(tickets=ids, message=f"Ticket {ids[0]} lands epic {wanted.epic} as one change.")


def land_ready(context: Context, project: int) -> None:
    """With `landing.pulls = "epic"`: land every epic whose tickets are all done."""
    with context.store.read() as tx:
        parent = projects.get(tx, project)
    config = context.project_of(parent).config
    if config.landing.pulls is not PullUnit.EPIC:
        return
    with context.store.read() as tx:
        names = epic_branches.ready(tx, parent, config.project.depends_on)
    for name in names:
        land(context, EpicBranch(cwd=parent.worktrees, epic=name))
