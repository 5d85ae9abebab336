"""Saves an agent's work as one commit in the hub: own commits, all uncommitted; by rules for nested repositories."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from legion.domain.agents.agent import Agent
from legion.domain.landing import repository_files
from legion.domain.landing.queue import LandingMode
from legion.domain.landing.repository_files import ChangedEntry, FaultyEntry
from legion.domain.runs import Run, ticket_seat
from legion.domain.tickets.ticket import Change, Ticket
from legion.git.core.history import FileStatus
from legion.git.hub.incoming import agent_commits, is_at
from legion.git.hub.objects import Signature, write_commit
from legion.git.hub.repository import Hub
from legion.git.trees.live import LiveTree
from legion.git.trees.obstacles import LARGEST_FILE
from legion.git.trees.setup_changes import without
from legion.git.trees.snapshots import TreeSnapshot, snapshot
from legion.git.trees.unsaved import GitOperation, kept_out, unfinished, unsaved
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import kept_outputs, sandbox
from legion.store.work import runs
from legion.system import crash, trees
from legion.system.crash import Point
from legion.system.process import FinishedProcess

AUTHOR = Signature(name="Legion", email="legion@localhost")


@dataclass(frozen=True, kw_only=True)
class Saved:
    commit: str
    tree: str
    changed: bool
    """Whether the tree differs from the one that the run started with."""
    nested: tuple[str, ...]
    """Repositories inside the tree; they stay on disk and are not part of the change."""
    left_out: tuple[str, ...]
    """Paths that [setup] made and that were edited since; they are not part of the change either."""
    unsaved: tuple[str, ...] = ()
    """What git cannot take into a change, each with its kind: pipes, unreadable files, paths that are too long."""
    unfinished: GitOperation | None = None
    """A merge or the like that the agent started and did not complete."""
    submodules: tuple[str, ...] = ()
    """Submodules that it changed; the change does not move them."""
    elsewhere: tuple[str, ...] = ()
    """Branches with commits that are not checked out, and the stash, where nothing else was changed."""


worktree_name = ticket_seat


def branch_name(ticket_id: int) -> str:
    return f"legion/{ticket_id}"


def save(context: Trees, project: ProjectContext, ticket: Ticket, run: Run, tree: Path) -> Saved:
    """Same tree, same commit: saving twice does no harm."""
    assert ticket.base is not None, "a ticket with a worktree has a base"
    message = f"{work_subject(project, ticket)}\n\nTicket: {ticket.id}\nAttempts: {run.attempt}\n"
    shot = _snapshot(
        context, project, run, tree, base=ticket.base, keep_as=f"wip/{ticket.id}/{run.id}", message=message
    )
    live = sandbox.live_tree(context, project, tree)
    return Saved(
        commit=shot.commit,
        tree=shot.tree,
        changed=shot.tree != found_tree(context, project, ticket, ticket.base),
        nested=shot.nested,
        left_out=_edited(project, live),
        unsaved=_unsaved(project, live, shot),
        unfinished=unfinished(tree),
        submodules=shot.submodules,
        elsewhere=_elsewhere(context, project, ticket.base, tree, shot),
    )


def work_subject(project: ProjectContext, ticket: Ticket) -> str:
    """The ticket's title, unless a merge commit will carry that: two commits with one subject look like a mistake."""
    title = ticket.spec.title.splitlines()[0]
    merged = project.config.landing.mode is LandingMode.MERGE
    return (f"Work on ticket {ticket.id}: {title}" if merged else title)[:72]


def save_turn(context: Trees, project: ProjectContext, agent: Agent, run: Run, tree: Path) -> str:
    """The work of a standing agent at the end of a turn, as a commit."""
    assert agent.base is not None, "an agent with a worktree has a base"
    message = f"{agent.name}\n\nAgent: {agent.id}\nTurn: {run.id}\n"
    keep_as = f"wip/{run.seat}/{run.id}"
    return _snapshot(context, project, run, tree, base=agent.base, keep_as=keep_as, message=message).commit


def _snapshot(
    context: Trees, project: ProjectContext, run: Run, tree: Path, *, base: str, keep_as: str, message: str
) -> TreeSnapshot:
    """The agent's own commits since the base, and on top of them everything else in the tree."""
    parent = _own_commits(context, project, base, tree) or base
    crash.reach(Point.SAVE_BEFORE_SNAPSHOT)
    shot = snapshot(
        sandbox.live_tree(context, project, tree),
        project.worktrees.index(run.seat),
        parent=parent,
        message=message,
        author=AUTHOR,
        when=int(run.started_at),
    )
    crash.reach(Point.SAVE_AFTER_SNAPSHOT)
    shot = _without_setup(project, run, tree, shot, base=base, parent=parent, message=message)
    project.hub.keep(keep_as, shot.commit)
    crash.reach(Point.SAVE_AFTER_KEEP)
    return shot


def _without_setup(
    project: ProjectContext, run: Run, tree: Path, shot: TreeSnapshot, *, base: str, parent: str, message: str
) -> TreeSnapshot:
    """The snapshot without what only [setup] did. What it made can be in there only by the agent's own commits."""
    made = kept_outputs.outputs(kept_outputs.record_of(project, tree)) if parent != base else ()
    hub = project.hub
    rest = without(hub, shot.tree, base=base, edited=kept_outputs.edited(project, tree), made=made)
    if rest == shot.tree:
        return shot
    if rest == hub.tree_of(parent):
        return replace(shot, commit=parent, tree=rest, changed=False)
    stamp = AUTHOR.stamp(int(run.started_at))
    commit = write_commit(hub, tree=rest, parents=(parent,), author=stamp, committer=stamp, message=message)
    return replace(shot, commit=commit, tree=rest)


def found_tree(context: Board, project: ProjectContext, ticket: Ticket, base: str) -> str:
    """The tree that the run started from."""
    if ticket.plant is not None:
        return ticket.plant
    with context.store.read() as tx:
        earlier = [run.saved for run in runs.of_ticket(tx, ticket.id, role="") if run.saved is not None]
    return project.hub.tree_of(earlier[-1] if earlier else base)


def _edited(project: ProjectContext, tree: LiveTree) -> tuple[str, ...]:
    """Paths that [setup] made and that were touched since, if no other rule keeps them out of the change."""
    record = kept_outputs.record_of(project, tree.path)
    made = kept_out(tree, kept_outputs.outputs(record))
    return tuple(path for path in made if _touched(tree.path, path, since=record.stat().st_mtime_ns))


def _unsaved(project: ProjectContext, tree: LiveTree, shot: TreeSnapshot) -> tuple[str, ...]:
    made = kept_outputs.outputs(kept_outputs.record_of(project, tree.path))
    found = dict.fromkeys(shot.unreadable, "git cannot read or store it")
    found |= dict.fromkeys(shot.large, f"larger than {LARGEST_FILE >> 30} GB")
    found |= unsaved(tree, skip={".git", *made})
    found |= dict.fromkeys(tree.removed_pipes(), "a named pipe in the place of a file that git reads; it was removed")
    return tuple(f"{path} ({kind})" for path, kind in found.items())


def _touched(tree: Path, path: str, since: int) -> bool:
    """By the time of the inode: a program can set any other time of its files."""
    facts = trees.facts(tree, path)
    if facts is None or facts.st_ctime_ns > since:
        return True
    inside = (found.facts for found in trees.walk(tree, at=path)) if stat.S_ISDIR(facts.st_mode) else ()
    return any(one is None or one.st_ctime_ns > since for one in inside)


def _elsewhere(context: Trees, project: ProjectContext, base: str, tree: Path, shot: TreeSnapshot) -> tuple[str, ...]:
    """Where an agent that seems to have changed nothing left its work."""
    if shot.tree != project.hub.tree_of(base):
        return ()
    words = ("git", "for-each-ref", "--format=%(refname)", f"--no-merged={base}", "refs/heads", "refs/stash")
    found = sandbox.reader(context, project, tree)(words)
    return tuple(name.removeprefix("refs/heads/")[:_LONGEST_NAME] for name in found.text.split()[:_MOST_BRANCHES])


_MOST_BRANCHES = 10
_LONGEST_NAME = 100


def _own_commits(context: Trees, project: ProjectContext, base: str, tree: Path) -> str | None:
    """The agent's own commits. None if there are none. Its .git is not trusted: git reads it only in its sandbox.

    Where the project has git filters they stay where they are: the agent's git has none, so it stores plain files.
    """
    # A link in place of the tree is reported by the snapshot.
    if tree.is_symlink() or is_at(tree, base) or project.hub.filters(base) is not None:
        return None

    def run(argv: Sequence[str]) -> FinishedProcess:
        return sandbox.reader(context, project, tree)(argv)

    return agent_commits(project.hub, base=base, run_sandboxed=run, work_tree=tree)


def faults(hub: Hub, change: Change) -> tuple[FaultyEntry, ...]:
    """The entries of the change that may not land."""
    return repository_files.faults(_entries(hub, change))


def links_into_git(hub: Hub, change: Change) -> tuple[str, ...]:
    return repository_files.links_into_git(_entries(hub, change))


def links_outside(hub: Hub, change: Change) -> tuple[str, ...]:
    return repository_files.links_outside(_entries(hub, change))


def repositories(hub: Hub, change: Change, commit: str) -> tuple[str, ...]:
    """The folders of `commit`, which holds the change, that the change makes a repository or alters as one."""
    changed = [file.path for file in hub.changed_files(change.base, change.commit)]
    return (
        repository_files.repositories(changed, hub.files(commit))
        if repository_files.may_form_repository(changed)
        else ()
    )


def _entries(hub: Hub, change: Change) -> list[ChangedEntry]:
    found = []
    for file in hub.changed_files(change.base, change.commit):
        if file.status is FileStatus.DELETED:
            continue
        mode, _, blob = file.content.partition(" ")
        content = (
            hub.content(blob).decode("utf-8", "replace") if repository_files.needs_content(file.path, mode) else ""
        )
        found.append(ChangedEntry(path=file.path, mode=mode, content=content))
    return found
