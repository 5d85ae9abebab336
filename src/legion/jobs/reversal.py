"""Proof by reversal of one change: its proofs on the code without it, and without each of its hunks.

What runs here leaves no receipt: it proves nothing about any commit that could land. It is bounded in time, and what
was not tried in that time is said.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from legion.domain import diffs
from legion.domain.checks import Check
from legion.domain.events import Kind
from legion.domain.reversal import Piece, Reversal, new_tests, pieces
from legion.domain.tickets import Ticket
from legion.git import reversing
from legion.git.merging import Candidate, Conflict
from legion.git.objects import write_commit
from legion.jobs import checking
from legion.jobs.candidates import candidate
from legion.jobs.saving import AUTHOR
from legion.jobs.world import Workshop, World
from legion.store import events
from legion.store.database import ReadTransaction, Transaction

_LEAST = 1.0
"""Seconds: with less left, nothing is begun any more."""


def wanted(shop: Workshop, ticket: Ticket) -> bool:
    """Whether the project asks for it, and there is anything to run."""
    return shop.config.reversal.seconds > 0 and bool(ticket.wish.proofs or shop.config.checks)


def prove(world: World, shop: Workshop, ticket: Ticket) -> tuple[str, Reversal] | None:
    """The tree that was looked at and what came out; None where that is known already, or nothing is to be done."""
    target = shop.target
    merged = candidate(world, shop, target, ticket)
    if not wanted(shop, ticket) or isinstance(merged, Conflict) or merged.tree == shop.hub.tree_of(target):
        return None
    with world.store.read() as tx:
        if _known(tx, ticket.id, merged.tree):
            return None
    return merged.tree, _Trial(world, shop, ticket, target, merged).run()


def record(tx: Transaction, ticket: Ticket, tree: str, found: Reversal) -> None:
    data = {
        "tree": tree,
        "idle": list(found.idle),
        "unproven": [{"path": one.path, "line": one.line, "lines": one.lines} for one in found.unproven],
        "tried": found.tried,
        "left": found.left,
    }
    tx.record(Kind.REVERSED, project=ticket.project, ticket=ticket.id, data=data)


def _known(tx: ReadTransaction, ticket: int, tree: str) -> bool:
    return any(event.data.get("tree") == tree for event in events.of_ticket(tx, ticket) if event.kind is Kind.REVERSED)


class _Trial:
    def __init__(self, world: World, shop: Workshop, ticket: Ticket, target: str, merged: Candidate) -> None:
        self._world = world
        self._shop = shop
        self._ticket = ticket
        self._target = target
        self._merged = merged
        self._until = time.monotonic() + shop.config.reversal.seconds
        own = [want.check for want in checking.proofs(ticket.id, ticket.wish.proofs)]
        self._checks: Sequence[Check] = own or shop.config.checks

    def run(self) -> Reversal:
        change = diffs.read(self._shop.hub.patch(self._target, self._merged.commit))
        tests = new_tests(change)
        idle: tuple[str, ...] = ()
        if tests or self._ticket.wish.proofs:
            before = reversing.with_files(self._shop.hub, self._target, self._merged.commit, tests)
            idle = tuple(check.command for check in self._checks if self._passes(before, [check]))
        unproven: list[Piece] = []
        tried = 0
        all_pieces = pieces(change)
        for piece in all_pieces:
            tree = reversing.without(self._shop.hub, self._merged.commit, piece.patch)
            passed = None if tree is None else self._passes(tree, self._checks)
            if passed is None and self._time_left() < _LEAST:
                break
            tried += 1
            if passed:
                unproven.append(piece)
        return Reversal(idle=idle, unproven=tuple(unproven), tried=tried, left=len(all_pieces) - tried)

    def _time_left(self) -> float:
        return self._until - time.monotonic()

    def _passes(self, tree: str, checks: Sequence[Check]) -> bool | None:
        """None where the time was up before it was known."""
        stamp = AUTHOR.stamp(int(self._ticket.moved_at))
        commit = write_commit(
            self._shop.hub, tree=tree, parents=(self._target,), author=stamp, committer=stamp, message="Taken back"
        )
        for check in checks:
            left = self._time_left()
            if left < _LEAST:
                return None
            code = checking.try_out(self._world, self._shop, commit, replace(check, timeout=min(check.timeout, left)))
            if code != 0:
                return None if code is None and self._time_left() < _LEAST else False
        return True
