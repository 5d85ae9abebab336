"""Makes the change of a ticket that lands a specification: its documents as files, without an agent."""

from __future__ import annotations

from legion.domain.plans.specification import KEY, kept_files
from legion.domain.tickets.ticket import Change, Fail, Propose, Ticket
from legion.git.core.trailers import with_trailers
from legion.git.hub.objects import write_commit
from legion.git.trees.tree import tree_with_files
from legion.jobs.board import Board
from legion.jobs.checks.candidates import trailers
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.save import AUTHOR, Saved, work_subject
from legion.store.board import goals, specifications


def files_of(context: Board, project: ProjectContext, ticket: Ticket) -> dict[str, str]:
    """The documents that a ticket lands; none for a ticket of any other kind."""
    with context.store.read() as tx:
        origin = goals.origin_of(tx, ticket.id)
        if origin is None or origin[1] != KEY or not goals.get(tx, origin[0]).keep_docs:
            return {}
        plan = goals.get(tx, origin[0])
        written = specifications.of_plan(tx, plan.id)
    return kept_files(project.config.plans.docs, plan.name, written)


def write(
    context: Board, project: ProjectContext, ticket: Ticket, files: dict[str, str]
) -> tuple[Propose | Fail, Saved | None]:
    """The change that such a ticket proposes, made on the target as it is now."""
    target = project.target
    tree = tree_with_files(project.hub, target, {path: text.encode() for path, text in files.items()})
    if tree == project.hub.tree_of(target):
        return Fail("the target has these documents already"), None
    stamp = AUTHOR.stamp(int(ticket.moved_at))
    message = with_trailers(f"{work_subject(project, ticket)}\n".encode(), trailers(context, project, ticket))
    commit = write_commit(project.hub, tree=tree, parents=(target,), author=stamp, committer=stamp, message=message)
    project.hub.keep(f"wip/{ticket.id}/documents-{ticket.attempt}", commit)
    saved = Saved(commit=commit, tree=tree, changed=True, nested=(), left_out=())
    return Propose(Change(base=target, commit=commit)), saved
