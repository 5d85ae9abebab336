"""Saving what an agent left: its own commits and everything uncommitted become one commit in the hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.domain.runs import Run
from legion.domain.tickets import Ticket
from legion.git.incoming import agent_commits
from legion.git.objects import Signature
from legion.git.snapshots import snapshot
from legion.jobs import places
from legion.jobs.world import Workshop, World
from legion.runner.sandbox import wrap
from legion.system import crash, process
from legion.system.crash import Point
from legion.system.process import Finished

AUTHOR = Signature(name="Legion", email="legion@localhost")


_READING = 120.0
"""Seconds that an agent's repository may take to tell its commits."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    commit: str
    tree: str
    nested: tuple[str, ...]
    """Repositories inside the tree; they stay on disk and are no part of the change."""


def worktree_name(ticket_id: int) -> str:
    return f"ticket-{ticket_id}"


def branch_name(ticket_id: int) -> str:
    return f"legion/{ticket_id}"


def save(world: World, shop: Workshop, ticket: Ticket, run: Run, tree: Path) -> Saved:
    """Same tree, same commit: saving twice does no harm."""
    assert ticket.base is not None, "a ticket with a worktree stands on a base"
    kept_as = f"wip/{ticket.id}/{run.id}"
    parent = _own_commits(world, shop, ticket.base, tree, f"{kept_as}-own") or ticket.base
    crash.reach(Point.SAVE_BEFORE_SNAPSHOT)
    shot = snapshot(
        shop.hub,
        tree,
        shop.worktrees.index(worktree_name(ticket.id)),
        parent=parent,
        message=f"{ticket.wish.title.splitlines()[0][:72]}\n\nTicket: {ticket.id}\nAttempt: {run.attempt}\n",
        author=AUTHOR,
        when=int(run.started_at),
    )
    crash.reach(Point.SAVE_AFTER_SNAPSHOT)
    shop.hub.keep(kept_as, shot.commit)
    crash.reach(Point.SAVE_AFTER_KEEP)
    return Saved(commit=shot.commit, tree=shot.tree, nested=shot.nested)


def _own_commits(world: World, shop: Workshop, base: str, tree: Path, keep_as: str) -> str | None:
    """The agent's own commits, read inside its sandbox, since its .git may say anything. None if there are none."""
    walls = places.sandbox(world, shop, writable=(), readable=(tree,))

    def run_sandboxed(argv: Sequence[str]) -> Finished:
        env = places.environment(world, {})
        if walls is None:
            return process.run(argv, cwd=tree, env=env, timeout=_READING)
        wrapped = wrap(argv, walls, cwd=tree, env=env)
        return process.run(wrapped.argv, env=wrapped.env, timeout=_READING)

    return agent_commits(shop.hub, base=base, run_sandboxed=run_sandboxed, keep_as=keep_as)
