"""Epics with a branch of their own: a session that its tickets land in, and which then lands as one change.

With `landing.pulls = "epic"` that happens by itself, so an epic becomes one pull request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.domain.landing.queue import PullUnit
from legion.domain.projects import Project, epic_slug, is_session_of_epic, session_of_branch
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import Change, Propose, Rewind, Start, State
from legion.git.person.adopted import adopt_branch
from legion.git.person.branches import make_branch
from legion.git.person.inspect import has_branch
from legion.jobs.board import Board
from legion.jobs.trees import Trees, settings_of
from legion.jobs.workspace import linked_projects
from legion.service.projects import sessions
from legion.store import epic_sessions
from legion.store.board import projects, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.system import crash
from legion.system.crash import Point
from legion.wire.dispatch import NewTicket
from legion.wire.plans import NamedEpic
from legion.wire.projects import Done
from legion.wire.sessions import NamedSession


def propose(tx: Transaction, ticket: int, start: StartPoint, commit: str) -> None:
    tickets.move(tx, ticket, Rewind(start, ""))
    tickets.move(tx, ticket, Start(start.base))
    tickets.move(tx, ticket, Propose(Change(base=start.base, commit=commit)))


_MOST = 100


@dataclass(frozen=True, kw_only=True)
class WholeEpic:
    """An epic's branch as one new ticket of the default session. `propose` gives the ticket its change."""

    parent: Project
    new: NewTicket
    request: str
    start: StartPoint
    commit: str

    def propose(self, tx: Transaction, ticket: int) -> None:
        """The branch is the change."""
        propose(tx, ticket, self.start, self.commit)


def open_branch(context: Trees, wanted: NamedEpic) -> Done:
    parent = sessions.default_of(context, wanted.cwd)
    if not wanted.epic.strip():
        raise BadInput("Name the epic: `legion status epic NAME --own-branch`.")
    with context.store.read() as tx:
        there = session_of(tx, parent, wanted.epic)
        outside = [one.id for one in tickets.of_epic(tx, parent.id, wanted.epic) if not one.ended]
    session = there or make_session(context, parent, wanted.epic)
    listed = ", ".join(map(str, outside[:10]))
    notes = [f"Tickets that it has already land on {parent.branch}: {listed}."] if outside else []
    return Done(
        message=f"New tickets of epic {wanted.epic} land on {session.branch}, in session {session.session_name}; "
        f"`legion status epic {wanted.epic} --land` lands all of it as one change.",
        notes=notes,
    )


def session_of(tx: ReadTransaction, record: Project, epic: str) -> Project | None:
    """The open session of an epic."""
    there = projects.sessions_of(tx, record.common_dir)
    return next((one for one in there if one.target and is_session_of_epic(one.session, epic)), None)


def make_session(context: Trees, parent: Project, epic: str) -> Project:
    """On a new branch that starts at what has landed. A name that an earlier branch has gets a number."""
    common_dir, first = Path(parent.common_dir), f"epic/{epic_slug(epic)}"
    names = [first, *(f"{first}-{number}" for number in range(2, _MOST))]
    with context.store.read() as tx:
        half_made = {one.session for one in projects.sessions_of(tx, parent.common_dir) if not one.target}
    branch = next(
        (one for one in names if session_of_branch(one) in half_made or not has_branch(common_dir, one)), names[-1]
    )
    if not has_branch(common_dir, branch):
        make_branch(common_dir, branch, parent.target, source=context.hub(parent.id).path)
    return sessions.make(context, parent, branch, session_of_branch(branch))


def redirected(context: Trees, record: Project, new: Sequence[NewTicket], *, dry_run: bool) -> Project:
    """The session that these tickets go to: that of their epic where it has one."""
    names = {one.epic for one in new}
    if record.session or names == {""}:
        return record
    with context.store.read() as tx:
        found = {name: session_of(tx, record, name) for name in names if name}
    landing = settings_of(record, origin="legion.toml").landing
    if len(names) > 1:
        with_branch = [name for name, session in found.items() if session is not None]
        if with_branch:
            raise BadInput(f"Epic {with_branch[0]} has a branch of its own: dispatch its tickets alone.")
        return record
    (name,) = names
    if found[name] is None and landing.by_pull_request and landing.pulls is PullUnit.EPIC and not dry_run:
        return make_session(context, record, name)
    return found[name] or record


def ready(tx: ReadTransaction, parent: Project, upstream: Sequence[str]) -> list[str]:
    """Epics whose branch can land: all its tickets are done, and so is the epic in the projects of `upstream`."""
    complete = [*epic_sessions.interrupted(tx, parent)]
    for one in projects.sessions_of(tx, parent.common_dir):
        if one.session and one.target and set(tickets.counts(tx, one.id)) == {State.DONE}:
            complete.append(one)
    names = [(one, name) for one in complete for name in epic_sessions.names(tx, one.id)]
    mine = [name for one, name in names if is_session_of_epic(one.session, name)]
    return [name for name in dict.fromkeys(mine) if not linked_projects.unlanded_epic(tx, parent, upstream, name)]


def to_land(context: Board, cwd: str, epic: str) -> tuple[Project, Project]:
    """The default session, and the session of the epic whose branch can land now or later."""
    parent = sessions.default_of(context, cwd)
    with context.store.read() as tx:
        session = session_of(tx, parent, epic) or epic_sessions.unlanded_session(tx, parent, epic)
        open_ones = tickets.live(tx, project=session.id) if session is not None else ()
    if session is None:
        raise NotFound(
            f"Epic {epic[:60]} has no branch of its own: `legion status epic {epic[:60]} --own-branch` makes one."
        )
    if session.target == session.base_commit and not open_ones:
        raise StateConflict(f"Nothing has landed on {session.branch} yet: see `legion status epic {epic}`.")
    return parent, session


def waits_for(context: Trees, parent: Project, session: Project, epic: str) -> str:
    """What has to happen before the branch of an epic can land; empty where it can land now."""
    names = context.project_of(parent).config.project.depends_on
    with context.store.read() as tx:
        first = linked_projects.unlanded_epic(tx, parent, names, epic)
        live = [str(ticket.id) for ticket in tickets.live(tx, project=session.id)]
    if live:
        return f"tickets {', '.join(live[:5])} have ended" if len(live) > 1 else f"ticket {live[0]} has ended"
    return f"it has landed in {first}, which legion.toml depends on" if first else ""


def whole(context: Trees, cwd: str, epic: str) -> WholeEpic:
    """Collect the branch of an epic, end its session, and describe the ticket that lands it."""
    parent, session = to_land(context, cwd, epic)
    if session.removed_at is None:
        with context.store.write() as tx:
            epic_sessions.end_to_land(tx, parent.id, session)
        crash.reach(Point.EPIC_BEFORE_END)
        sessions.complete(context, NamedSession(cwd=parent.worktrees, name=session.session))
        crash.reach(Point.EPIC_AFTER_END)
    project = context.project_of(parent)
    work = adopt_branch(project.hub, Path(parent.common_dir), session.branch, target=project.target)
    with context.store.read() as tx:
        parts = tickets.of_epic(tx, session.id, epic)
    listed = "\n".join(f"- ticket {one.id}: {one.spec.title}" for one in parts if one.landed is not None)
    new = NewTicket(
        title=f"Epic {epic}", text=f"Land the branch {session.branch} as one change. It holds:\n\n{listed}", epic=epic
    )
    start = StartPoint(base=work.base, tree=work.tree)
    request = epic_sessions.request_of(session)
    return WholeEpic(parent=parent, new=new, request=request, start=start, commit=work.commit)
