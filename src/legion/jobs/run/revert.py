"""Reverts a landed ticket: builds the reverse of its change as a change of its own, without an agent."""

from __future__ import annotations

from legion.domain.tickets.ticket import Cause, Change, Fail, Propose, Ticket
from legion.git.core.trailers import with_trailers
from legion.git.merge.candidates import MergeCandidate, MergeConflict
from legion.jobs.board import Board
from legion.jobs.checks.candidates import trailers
from legion.jobs.landing.reverted import before, reverse
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.save import Saved, work_subject
from legion.store.board import tickets


def undo(context: Board, project: ProjectContext, ticket: Ticket) -> tuple[Propose | Fail, Saved | None]:
    """The change that a ticket of this kind proposes, made on the target as it is now."""
    assert ticket.spec.undoes is not None, "only a ticket that undoes another is reverted"
    with context.store.read() as tx:
        landed = tickets.get(tx, ticket.spec.undoes)
        stood_on = before(tx, project, landed)
    target = project.target
    text = f"{work_subject(project, ticket)}\n"
    text = with_trailers(text.encode(), trailers(context, project, ticket)).decode()
    made = reverse(project, target, landed, stood_on, text=text, when=int(ticket.moved_at))
    match made:
        case MergeCandidate(commit=commit, tree=tree):
            project.hub.keep(f"wip/{ticket.id}/undo-{ticket.attempt}", commit)
            saved = Saved(commit=commit, tree=tree, changed=True, nested=(), left_out=())
            return Propose(Change(base=target, commit=commit)), saved
        case MergeConflict():
            return Fail(f"it cannot be reverted: {describe_conflict(made)}", cause=Cause.CONFLICT), None
        case None:
            return Fail(f"nothing of ticket {landed.id} is left in the target"), None


def describe_conflict(conflict: MergeConflict) -> str:
    named = ", ".join(file.path for file in conflict.files[:3])
    return f"what landed after it changed the same lines ({named})"
