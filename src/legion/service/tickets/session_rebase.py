"""Carries out the answer about a branch that changed under its session. A rebase lands landed work on it again.

That work is one change of a ticket without an agent, checked and landed like any other.
"""

from __future__ import annotations

from pathlib import Path

from legion.domain.errors import StateConflict
from legion.domain.questions import REBASE, REBUILD, RECREATE
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import Ticket
from legion.git.merge.candidates import MergeConflict, reapply
from legion.jobs.landing import reverted
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace.save import AUTHOR
from legion.service.projects import sessions
from legion.service.projects.epic_branches import propose
from legion.service.tickets.dispatch import create
from legion.service.tickets.prepare import prepare
from legion.store.board import projects
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.projects import Done
from legion.wire.sessions import BindSession, NamedSession


def answer_branch(context: Trees, project: int, choice: str, branch: str) -> str:
    """Do what a person answered about a branch. Returns the sentence about it."""
    with context.store.read() as tx:
        record = projects.get(tx, project)
    here = NamedSession(cwd=record.worktrees, name=record.session_name)
    if choice == RECREATE:
        done = sessions.recreate(context, here)
    elif choice == REBUILD:
        done = sessions.rebuild(context, here)
    elif choice == REBASE:
        done = rebase(context, here)
    else:
        done = sessions.bind(context, BindSession(cwd=record.worktrees, name=record.session_name, branch=branch))
    return " ".join([done.message, *done.notes])


def rebase(context: Trees, wanted: NamedSession) -> Done:
    """The branch as it is becomes the target, and one ticket lands what the person had not collected before."""
    record = sessions.named(context, wanted.cwd, wanted.name)
    project = context.project_of(record)
    tip = project.hub.fetch_person(Path(record.common_dir), record.branch)
    old = project.target
    left = reverted.removed_from_target(context, project, old=old, new=tip)
    again = _uncollected(project, left)
    if not again:
        return sessions.rebuild(context, wanted)
    when = int(max(ticket.moved_at for ticket, _ in again))
    changes = [(ticket.landed or "", before) for ticket, before in again]
    made = reapply(project.hub, tip, changes, committer=AUTHOR, when=when)
    if isinstance(made, MergeConflict):
        files = ", ".join(one.path for one in made.files[:5])
        raise StateConflict(
            f"Landed work conflicts with {record.branch} as it is now, in {files}. `legion session rebuild "
            f"{record.session_name}` starts without that work and keeps it in the hub; else both are merged."
        )

    listed = "\n".join(f"- ticket {ticket.id}: {ticket.spec.title}" for ticket, _ in again)
    new = NewTicket(
        title=f"Land again on {record.branch}",
        text=f"The branch {record.branch} was rewritten. Land on it what had landed before:\n\n{listed}",
    )
    # With the target: a branch may be reset to the same commit again after more has landed.
    id = f"session-rebase:{record.id}:{old}:{tip}"
    request = Dispatch(cwd=record.worktrees, tickets=[new], request=id)
    prepared = prepare(context, request)
    with context.store.write() as tx:
        created = create(tx, prepared)
        (number,) = created.answer.ids
        if created.new:
            sessions.restart(tx, project, tip, [ticket.id for ticket, _ in left], REBASE, before=old)
            propose(tx, number, StartPoint(base=tip, tree=made.tree), made.commit)
    return Done(
        message=f"Session {record.session_name} starts from {record.branch} at {tip[:9]}; ticket {number} lands on it "
        f"again what had landed and was not collected."
    )


def _uncollected(project: ProjectContext, left: tuple[tuple[Ticket, str], ...]) -> list[tuple[Ticket, str]]:
    """Without what the person had in the branch and removed from it."""
    theirs = list(project.hub.kept("before").values())
    return [
        (ticket, before)
        for ticket, before in left
        if not any(project.hub.is_ancestor(ticket.landed or "", one) for one in theirs)
    ]
