"""One pass over a project's forge: its branch, its issues, the pull requests of tickets, comments that command."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from legion.domain.errors import LegionError, NotAllowed, NotFound
from legion.domain.landing.destination import LandingTarget
from legion.forge.errors import ForgeLimited
from legion.git.hub import remote
from legion.git.hub.attribute_files import EMPTY_TREE
from legion.git.hub.lfs import lfs_files
from legion.jobs.forge import claims, commands, notices, pulls
from legion.jobs.forge.actions import BoardActions
from legion.jobs.forge.clients import open_forge, pass_lock
from legion.jobs.forge.visit import Visit, each
from legion.jobs.landing import upstream
from legion.jobs.supervise.outcome import first_paths
from legion.jobs.trees import Trees
from legion.store.board import forges

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
            upstream.fetch(context, project)
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
            lambda: commands.obey(visit),
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
    upstream.fetch(visit.context, project)
