"""Sessions: several targets of one repository at once, each bound to a branch of the person.

A session is a project of its own that shares the person's repository: target, hub, merge queue, tickets and agents are
keyed by project everywhere, so they are apart by construction. Its folder of worktrees names it in requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.landing.queue import LandingTarget
from legion.domain.projects import DEFAULT_SESSION, Project, acting, session_fault, session_of_branch
from legion.domain.questions import BIND, REBUILD, RECREATE
from legion.domain.text import count
from legion.git.core.errors import GitError
from legion.git.person.branches import make_branch, make_scratch
from legion.git.person.inspect import branches, checked_out, dropped, has_branch, look
from legion.jobs.board import Board
from legion.jobs.landing import branch_questions, reverted, target
from legion.jobs.trees import ProjectContext, Trees
from legion.service.projects import collect, registry
from legion.store import session_restarts
from legion.store.board import landings, projects, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.wire.projects import AddProject, Done
from legion.wire.sessions import (
    BindSession,
    Branches,
    DeleteSession,
    NamedSession,
    NewSession,
    SessionLine,
    SessionList,
)


def session_list(context: Trees, cwd: str, all: bool = False) -> SessionList:
    record = registry.find(context, cwd)
    with context.store.read() as tx:
        there = [one for one in projects.sessions_of(tx, record.common_dir) if one.target]
        chosen = acting(there)
        lines = [_line(context, tx, one, acting=one == chosen) for one in there]
        if all:
            lines += [_ended(one) for one in projects.sessions_of(tx, record.common_dir, ended=True)]
    return SessionList(sessions=lines, checkout=checked_out(Path(record.root)) or "")


def branch_list(context: Board, cwd: str) -> Branches:
    return Branches(branches=list(branches(Path(registry.find(context, cwd).common_dir))))


def _line(context: Trees, tx: ReadTransaction, record: Project, *, acting: bool) -> SessionLine:
    behind = record.person_tip or record.person_absorbed
    hub = context.hub(record.id)
    ahead = len(hub.commits_between(behind, record.target)) if behind and behind != record.target else 0
    return SessionLine(
        name=record.session_name,
        branch=record.branch,
        acting=acting,
        open=tickets.how_many_live(tx, record.id),
        ahead=ahead,
        target=record.target,
        folder=record.worktrees,
        created_at=record.created_at,
        notes=session_notes(tx, record) if acting or not has_branch(Path(record.common_dir), record.branch) else [],
    )


def _ended(record: Project) -> SessionLine:
    return SessionLine(
        name=record.session,
        branch=record.branch,
        acting=False,
        open=0,
        ahead=0,
        target=record.target,
        folder=record.worktrees,
        created_at=record.created_at,
        ended_at=record.removed_at,
    )


def new(context: Trees, wanted: NewSession) -> SessionList:
    default = default_of(context, wanted.cwd)
    common_dir = Path(default.common_dir)
    branch = wanted.branch or checked_out(Path(default.root)) or ""
    if not branch:
        raise BadInput("HEAD is detached here, so name the branch: legion session new BRANCH.")
    name = wanted.name or session_of_branch(branch)
    if fault := session_fault(name):
        raise BadInput(f"`{name[:80]}` cannot be the name of a session: it {fault}. Give another with --name.")
    with context.store.read() as tx:
        there = projects.sessions_of(tx, default.common_dir)
    taken = next((one for one in there if one.target and (one.session == name or one.branch == branch)), None)
    if taken is not None:
        raise StateConflict(
            f"Session {taken.session_name} is bound to {taken.branch} already: "
            f"`legion session switch {taken.session_name}` acts on it."
        )
    if wanted.base:
        make_branch(common_dir, branch, wanted.base)
    elif not has_branch(common_dir, branch):
        raise NotFound(
            f"There is no branch {branch}: make it with `git branch {branch}`, or give --base-branch {default.branch}."
        )
    _choose(context, make(context, default, branch, name))
    return session_list(context, wanted.cwd)


def make(context: Board, default: Project, branch: str, name: str) -> Project:
    """A session on a branch that is there, with what was trusted; or the rest of one that was interrupted."""
    with context.store.read() as tx:
        half_made = projects.by_common_dir(tx, default.common_dir, name)
    facts = replace(look(Path(default.root)), branch=branch)
    folder = Path(default.worktrees) / f"@{name}"
    registry.refuse_unwritable(folder)
    made = registry.register(context, half_made, facts, folder, default.config_text, trust=False, session=name)
    with context.store.write() as tx:
        for hash in projects.trusted_hashes(tx, default.id):
            projects.trust(tx, made.id, hash)
    return made


def switch(context: Board, wanted: NamedSession) -> Done:
    record = named(context, wanted.cwd, wanted.name)
    _choose(context, record)
    message = f"Commands act on session {record.session_name} now; its work lands on {record.branch}."
    here = checked_out(Path(record.root))
    other = here is not None and here != record.branch
    return Done(message=message, notes=[f"Your checkout stays on {here}."] if other else [])


def complete(context: Trees, wanted: NamedSession) -> Done:
    """Collect, then end. Both can be repeated."""
    record = _ending(context, wanted)
    with context.store.read() as tx:
        live = [ticket.id for ticket in tickets.live(tx, project=record.id)]
    if live:
        listed = ", ".join(map(str, live[:5]))
        raise StateConflict(
            f"Tickets of session {record.session} have not ended ({listed}): wait for them with "
            f"`legion session complete {record.session} --wait`, or stop them."
        )
    got = collect.collect(context, record.worktrees)
    registry.end(context, named(context, wanted.cwd, record.session))
    return Done(message=f"Session {record.session} is complete. {got.message}")


def delete(context: Trees, wanted: DeleteSession) -> Done:
    record = _ending(context, NamedSession(cwd=wanted.cwd, name=wanted.name))
    hub = registry.end(context, record, uncollected=wanted.uncollected)
    return Done(
        message=f"Session {record.session} is deleted; the branch {record.branch} stays.",
        notes=[f"Its worktrees are in {Path(record.worktrees) / '.trash'}, its hub is in {hub}."],
    )


def drop(context: Board, wanted: NamedSession) -> Done:
    here = registry.find(context, wanted.cwd)
    with context.store.write() as tx:
        ended = projects.sessions_of(tx, here.common_dir, ended=True)
        found = [one for one in ended if one.session == wanted.name]
        if not found:
            raise NotFound(f"No ended session is called {wanted.name[:60]!r}: see `legion session list --all`.")
        for one in found:
            projects.save(tx, replace(one, session=""))
    return Done(message=f"Session {wanted.name} is no longer listed; what it landed stays.")


def bind(context: Trees, wanted: BindSession) -> Done:
    """Its work lands on another branch from now on. Nothing of the target is lost: both are merged as usual."""
    record = named(context, wanted.cwd, wanted.name)
    if not has_branch(Path(record.common_dir), wanted.branch):
        raise NotFound(f"There is no branch {wanted.branch[:100]}: see `git branch`.")
    with context.store.write() as tx:
        others = [one for one in projects.sessions_of(tx, record.common_dir) if one.branch == wanted.branch]
        if any(one.id != record.id for one in others):
            raise StateConflict(f"Session {others[0].session_name} is bound to {wanted.branch} already.")
        current = projects.get(tx, record.id)
        bound = replace(current, branch=wanted.branch, person_refused=None)
        projects.save(tx, bound, EventKind.PERSON_SEEN, {"branch": wanted.branch, "before": record.branch})
        branch_questions.settle_open(tx, record.id, BIND)
    target.fetch(context, context.project(record.id))
    return Done(message=f"Session {record.session_name} is bound to {wanted.branch}; what landed is collected there.")


def rebuild(context: Trees, wanted: NamedSession) -> Done:
    """The branch as it is becomes the target. The old target is kept in the hub."""
    record = named(context, wanted.cwd, wanted.name)
    project = context.project_of(record)
    tip = project.hub.fetch_person(Path(record.common_dir), record.branch)
    before = project.target
    left = reverted.removed_from_target(context, project, old=before, new=tip)
    with context.store.write() as tx:
        restart(tx, project, tip, [one.id for one, _ in left], REBUILD, before=before)
    lost = len(project.hub.commits_between(tip, before))
    kept = count(lost, "landed commit that it lacks is", "landed commits that it lacks are")
    notes = [f"{kept} kept as refs/legion/before/{before} in {project.hub.path}."] if lost else []
    return Done(message=f"Session {record.session_name} starts from {record.branch} at {tip[:9]}.", notes=notes)


def restart(
    tx: Transaction, project: ProjectContext, tip: str, left: Sequence[int], choice: str, *, before: str
) -> None:
    """Make the tip of its branch the target of a session. `left` are the tickets whose work the target then lacks, as
    they were found for the target `before`: what has landed on it since would be lost.
    """
    current = projects.get(tx, project.id)
    if landings.open_ones(tx, project.id) or project.target != before:
        raise StateConflict("Something is just landing. Try again in a moment.")
    project.hub.keep(f"before/{before}", before)
    project.hub.move_target(tip, expected=before)
    fresh = replace(current, target=tip, person_tip=tip, person_absorbed=tip, person_refused=None)
    projects.save(tx, fresh, EventKind.PERSON_SEEN, {"tip": tip, "left": before})
    session_restarts.remember(tx, project.id)
    reverted.record(tx, project, tip, left, ())
    branch_questions.settle_open(tx, project.id, choice)


def recreate(context: Trees, wanted: NamedSession) -> Done:
    """The deleted branch again, at the last commit of it that the person had."""
    record = named(context, wanted.cwd, wanted.name)
    if has_branch(Path(record.common_dir), record.branch):
        raise StateConflict(f"The branch {record.branch} exists; there is nothing to make again.")
    commit = record.person_tip or record.base_commit or record.target
    make_branch(Path(record.common_dir), record.branch, commit, source=context.hub(record.id).path)
    with context.store.write() as tx:
        branch_questions.settle_open(tx, record.id, RECREATE)
    target.fetch(context, context.project(record.id))
    return Done(message=f"{record.branch} is at {commit[:9]} again; `legion collect` brings what landed since.")


def _choose(context: Board, record: Project) -> None:
    with context.store.write() as tx:
        for one in projects.sessions_of(tx, record.common_dir):
            wanted = one.id == record.id and one.session != ""
            if one.chosen != wanted:
                projects.save(tx, replace(one, chosen=wanted))


def default_of(context: Board, cwd: str) -> Project:
    record = registry.find(context, cwd)
    with context.store.read() as tx:
        found = projects.by_common_dir(tx, record.common_dir)
    return found or record


def named(context: Board, cwd: str, name: str) -> Project:
    """By its name or its branch."""
    record = registry.find(context, cwd)
    with context.store.read() as tx:
        there = [one for one in projects.sessions_of(tx, record.common_dir) if one.target]
    by_name = [one for one in there if one.session_name == name]
    found = by_name or [one for one in there if one.branch == name]
    if not found:
        listed = ", ".join(one.session_name for one in there)
        raise NotFound(f"There is no session {name[:60]!r}: the sessions are {listed}.")
    return found[0]


def _ending(context: Board, wanted: NamedSession) -> Project:
    record = named(context, wanted.cwd, wanted.name)
    if not record.session:
        raise StateConflict(f"The session {DEFAULT_SESSION} stays: `legion collect` collects it.")
    return record


# The scratch project: where an agent works that was hired in a folder of no project.

NAME = "scratch"


def find_or_scratch(context: Trees, cwd: str) -> tuple[Project, list[str]]:
    """The project of a folder, or the scratch project and a sentence what that means."""
    found = registry.find_or_none(context, cwd)
    if found is not None:
        return found, []
    root = make_scratch(context.data.root / "own" / NAME)
    if registry.find_or_none(context, str(root)) is None:
        registry.add(context, AddProject(path=str(root)))
    said = (
        f"{cwd} is in no project, so this agent works in Legion's own folder {root} and does not see {cwd}. "
        "`legion init` there, and a new hire, give an agent its files."
    )
    return registry.find(context, str(root)), [said]


# Sentences about a session and the person's checkout: it has another branch, or the session's branch is gone or was
# rewritten.


def session_notes(tx: ReadTransaction, record: Project, cwd: str = "") -> list[str]:
    """Empty where the checkout has the session's branch. `cwd` is where the person is.

    In the session's own folder it is chosen on purpose, and nothing is said.
    """
    if not Path(record.common_dir).is_dir() or Path(record.worktrees) in (Path(cwd), *Path(cwd).parents):
        return []
    named = f"session {record.session_name} on {record.branch}"
    try:
        is_there = has_branch(Path(record.common_dir), record.branch)
    except GitError:
        # No repository, or a damaged one: other sentences of the status say so.
        return []
    if not is_there:
        name = record.session_name
        again = f"`legion session recreate {name}` makes it again, `legion session bind {name} BRANCH` takes another"
        return [f"its branch {record.branch} is gone: {again}"]
    here = checked_out(_checkout(record, cwd))
    if here is None or here == record.branch:
        return []
    others = [one for one in projects.sessions_of(tx, record.common_dir) if one.branch == here]
    offer = (
        f"`legion session switch {others[0].session_name}` acts on {here}"
        if others
        else f"`legion session new {here}` makes a session for {here}"
    )
    return [f"work goes to {named}; your checkout is on {here}: {offer}"]


def rewritten_note(project: ProjectContext) -> list[str]:
    """What the next ticket or `collect` will ask about: landed work stands on a commit that the branch dropped."""
    record = project.record
    seen = record.person_tip
    if seen is None or seen != record.person_absorbed or project.config.landing.target is not LandingTarget.LOCAL:
        return []
    try:
        # Where nothing else has landed, the target follows the branch, and there is nothing to ask.
        if not dropped(Path(record.common_dir), record.branch, seen) or project.hub.target() in (None, seen):
            return []
    except GitError:
        return []
    after = "the next ticket asks in `legion inbox` what shall happen to what landed on it"
    return [f"its branch {record.branch} was rewritten and no longer contains {seen[:9]}: {after}"]


def _checkout(record: Project, cwd: str) -> Path:
    """The checkout that a folder is in, if it is one of this repository; else the project's own."""
    place = Path(cwd) if cwd else Path(record.root)
    found = next((folder for folder in (place, *place.parents) if (folder / ".git").exists()), None)
    ours = Path(record.worktrees).parent if record.session else Path(record.worktrees)
    if found is None or ours in (found, *found.parents):
        return Path(record.root)
    return found
