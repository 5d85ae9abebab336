"""Proof by reversal of one change: runs its proofs on the code without it, and without each of its hunks.

These runs leave no receipt: they prove nothing about a commit that could land. They are bounded in time, and the result
says how many hunks were not tried.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from legion.domain.checks import Check
from legion.domain.events import EventKind
from legion.domain.landing.revert_proof import RevertHunk, RevertProof, new_tests, revertable_hunks
from legion.domain.review import diffs
from legion.domain.tickets.ticket import Ticket
from legion.git.hub.objects import write_commit
from legion.git.merge import partial_trees
from legion.git.merge.candidates import MergeCandidate, MergeConflict
from legion.jobs.checks import execution
from legion.jobs.checks.candidates import candidate
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.cancellation import CancelToken
from legion.jobs.workspace.save import AUTHOR
from legion.store import events
from legion.store.database.transactions import ReadTransaction, Transaction

_LEAST = 1.0
"""Seconds: with less left, no further run starts."""


def wanted(project: ProjectContext, ticket: Ticket) -> bool:
    """Whether the project asks for it, and there is something to run."""
    return project.config.reversal.seconds > 0 and bool(ticket.spec.proofs or project.config.checks)


def prove(
    context: Context, project: ProjectContext, ticket: Ticket, cancel: CancelToken
) -> tuple[str, RevertProof] | None:
    """The tested tree and the result; None if that is known already, or there is nothing to do. Raises Cancelled."""
    target = project.target
    merged = candidate(context, project, target, ticket)
    if not wanted(project, ticket) or isinstance(merged, MergeConflict) or merged.tree == project.hub.tree_of(target):
        return None
    with context.store.read() as tx:
        if _known(tx, ticket.id, merged.tree):
            return None
    return merged.tree, _Trial(context, project, ticket, target, merged, cancel).run()


def record(tx: Transaction, ticket: Ticket, tree: str, found: RevertProof) -> None:
    data = {
        "tree": tree,
        "idle": list(found.idle),
        "unproven": [{"path": one.path, "line": one.line, "lines": one.lines} for one in found.unproven],
        "tried": found.tried,
        "left": found.left,
    }
    tx.record(EventKind.REVERSED, project=ticket.project, ticket=ticket.id, data=data)


def _known(tx: ReadTransaction, ticket: int, tree: str) -> bool:
    return any(
        event.data.get("tree") == tree for event in events.of_ticket(tx, ticket) if event.kind is EventKind.REVERSED
    )


class _Trial:
    def __init__(
        self,
        context: Context,
        project: ProjectContext,
        ticket: Ticket,
        target: str,
        merged: MergeCandidate,
        cancel: CancelToken,
    ) -> None:
        self._context = context
        self._project = project
        self._ticket = ticket
        self._target = target
        self._merged = merged
        self._cancel = cancel
        self._until = time.monotonic() + project.config.reversal.seconds
        own = [want.check for want in execution.proofs(ticket.id, ticket.spec.proofs)]
        self._checks: Sequence[Check] = own or project.config.checks

    def run(self) -> RevertProof:
        change = diffs.read(self._project.hub.patch(self._target, self._merged.commit))
        tests = new_tests(change)
        idle: tuple[str, ...] = ()
        if tests or self._ticket.spec.proofs:
            before = partial_trees.with_files(self._project.hub, self._target, self._merged.commit, tests)
            idle = tuple(check.command for check in self._checks if self._passes(before, [check]))
        unproven: list[RevertHunk] = []
        tried = 0
        all_pieces = revertable_hunks(change)
        for piece in all_pieces:
            tree = partial_trees.without(self._project.hub, self._merged.commit, piece.patch)
            passed = None if tree is None else self._passes(tree, self._checks)
            if passed is None and self._time_left() < _LEAST:
                break
            tried += 1
            if passed:
                unproven.append(piece)
        return RevertProof(idle=idle, unproven=tuple(unproven), tried=tried, left=len(all_pieces) - tried)

    def _time_left(self) -> float:
        return self._until - time.monotonic()

    def _passes(self, tree: str, checks: Sequence[Check]) -> bool | None:
        """None if the time was up before."""
        stamp = AUTHOR.stamp(int(self._ticket.moved_at))
        commit = write_commit(
            self._project.hub, tree=tree, parents=(self._target,), author=stamp, committer=stamp, message="Taken back"
        )
        for check in checks:
            left = self._time_left()
            if left < _LEAST:
                return None
            limited = replace(check, timeout=min(check.timeout, left))
            code = execution.try_out(self._context, self._project, commit, limited, cancel=self._cancel)
            if code != 0:
                return None if code is None and self._time_left() < _LEAST else False
        return True
