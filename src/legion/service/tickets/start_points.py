"""Start points of new tickets: the work of a branch or of a checkout of the person, as a tree on top of a base."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from legion.domain.errors import NotAllowed, NotFound
from legion.domain.tickets.ticket import Rewind, StartPoint
from legion.git.core.errors import BranchGone
from legion.git.person.adopted import adopt_branch
from legion.jobs.context import ProjectContext
from legion.store.board import tickets
from legion.store.database.transactions import Transaction
from legion.wire.dispatch import NewTicket

_CONTINUE = (
    "The worktree already holds the work of the branch {branch}. Read it with `git status` and `git diff` first, and "
    "continue from there."
)


def of_branches(project: ProjectContext, new: Sequence[NewTicket], *, by_a_person: bool) -> dict[str, StartPoint]:
    """By branch. Raises NotFound for one that does not exist."""
    named = {one.branch: one for one in new if one.branch}
    if named and not by_a_person:
        raise NotAllowed("Only a person starts a ticket from a branch of theirs. Leave `branch` out.")
    return {branch: _of_branch(project, branch, one) for branch, one in named.items()}


def _of_branch(project: ProjectContext, branch: str, one: NewTicket) -> StartPoint:
    try:
        work = adopt_branch(project.hub, Path(project.record.common_dir), branch, target=project.target)
    except BranchGone:
        shown = one.key or one.title
        raise NotFound(f"Ticket {shown!r}: there is no branch {branch}. See `git branch --all`.") from None
    return StartPoint(base=work.base, tree=work.tree)


def apply(tx: Transaction, starts: dict[str, StartPoint], ticket: int, branch: str) -> None:
    """Let a new ticket start from its branch."""
    if branch:
        tickets.move(tx, ticket, Rewind(starts[branch], "", _CONTINUE.format(branch=branch)))
