"""Sentences about a session and the person's checkout: it has another branch, or the session's branch is gone or was
rewritten.
"""

from __future__ import annotations

from pathlib import Path

from legion.domain.landing.destination import LandingTarget
from legion.domain.projects import Project
from legion.git.core.errors import GitError
from legion.git.person.inspect import checked_out, dropped, has_branch
from legion.jobs.trees import ProjectContext
from legion.store.board import projects
from legion.store.database.transactions import ReadTransaction


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
