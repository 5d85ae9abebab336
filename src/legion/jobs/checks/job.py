"""The check job: runs a ticket's proofs on its change, or for a checkpoint the project's checks on the target."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from legion.domain.checks import Check, CheckResult, HookKind, Receipt, cannot_run, never_passes, what_failed
from legion.domain.errors import LegionError
from legion.domain.events import EventKind
from legion.domain.review import diffs
from legion.domain.review.weakened_tests import RevertHunk, RevertProof, new_tests, revertable_hunks
from legion.domain.scheduling.decide import Claim
from legion.domain.tickets.evidence import check_named
from legion.domain.tickets.ladder import next_try
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import (
    AlreadyThere,
    AskReview,
    Cause,
    Change,
    Confirm,
    Fail,
    Prove,
    State,
    Step,
    Ticket,
    TryAgain,
)
from legion.git.hub.objects import write_commit
from legion.git.merge import partial_trees
from legion.git.merge.candidates import MergeCandidate, MergeConflict
from legion.jobs import person_hooks
from legion.jobs.attempts import escalation, feedback
from legion.jobs.board import Board
from legion.jobs.checks import approvals, candidates, execution, red_checks, reviewers
from legion.jobs.checks.approvals import ApprovalConcern
from legion.jobs.checks.candidates import candidate
from legion.jobs.checks.execution import CheckedCommit, WantedCheck
from legion.jobs.checks.ticket_watch import cancelling
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace.command import Cancelled, CancelToken
from legion.jobs.workspace.save import AUTHOR
from legion.store import events
from legion.store.board import past_tickets, receipts, tickets, verdicts
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import claims
from legion.system import crash
from legion.system.crash import Point


class ChecksBroken(LegionError):
    """The checks could not be run at all. The job backs off and tries again; no ticket is blamed."""


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """The results of all checks. The transaction that moves the ticket decides the step."""

    step: Step
    red: tuple[Receipt, ...] = ()
    """Of a checkpoint."""
    about: ApprovalConcern | None = None
    revert_proof: tuple[str, RevertProof] | None = None


def check(context: Context, claim: Claim) -> None:
    with context.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
    project = context.project(ticket.project)
    judged = None
    if ticket.state in (State.CHECKING, State.QUEUED):
        cancel = CancelToken()
        with contextlib.suppress(Cancelled), cancelling(context, [ticket], cancel):
            judged = _judge(context, project, ticket, cancel)
    crash.reach(Point.CHECK_BEFORE_CONCLUDE)
    with context.store.write() as tx:
        if claims.still_mine(tx, claim):
            if judged is not None and tickets.get(tx, ticket.id).version == ticket.version:
                escalation.apply_step(context, tx, ticket, _settled(context, project, tx, ticket, judged))
            claims.finish(tx, claim)
    crash.reach(Point.CHECK_AFTER_CONCLUDE)


def _judge(context: Context, project: ProjectContext, ticket: Ticket, cancel: CancelToken) -> _Judged | None:
    """None for a ticket that has to be worked on first."""
    if ticket.state is State.QUEUED:
        there = before_start(context, project, ticket, cancel)
        return _Judged(step=there) if there is not None else None
    if ticket.spec.checkpoint:
        return _checkpoint(context, project, ticket, cancel)
    about = approvals.concern(context, project, ticket, ticket.change) if ticket.change is not None else None
    if about is not None:
        with context.store.read() as tx:
            no = approvals.refused(tx, ticket, about)
        if no is not None:
            return _Judged(step=no)
    step = _proofs(context, project, ticket, cancel)
    if not isinstance(step, Prove) or ticket.change is None:
        return _Judged(step=step)
    if (refused := _refused_by_hook(context, project, ticket)) is not None:
        return _Judged(step=refused)
    return _Judged(
        step=reviewers.next_step(context, project, ticket, ticket.change),
        about=about,
        revert_proof=prove_by_revert(context, project, ticket, cancel),
    )


def _settled(context: Board, project: ProjectContext, tx: Transaction, ticket: Ticket, judged: _Judged) -> Step:
    step = judged.step
    if judged.revert_proof is not None:
        record_proof(tx, ticket, *judged.revert_proof)
    if isinstance(step, Prove) and (asked := [one.reviewer for one in verdicts.pending(tx, ticket) if one.binding]):
        # A person asked for a review meanwhile.
        step = AskReview((*step.readers, *asked), step.why)
    if judged.about is not None:
        step = approvals.settle(tx, ticket, judged.about, context.user.questions.answer_within) or step
    if isinstance(step, Fail) and judged.red:
        step = red_checks.instead(context, project, tx, ticket, step, judged.red)
    return step


def next_step_without_checks(
    context: Board, project: ProjectContext, ticket: Ticket, change: Change
) -> Prove | AskReview | None:
    """The step of a change that needs no check and no approval; None for any other."""
    if (
        ticket.spec.proofs
        or ticket.behind is not None
        or person_hooks.is_set(context, HookKind.TASK_COMPLETED)
        or proof_wanted(project, ticket)
        or candidates.kept(context, project, (ticket,), change.base, change.commit)
        or approvals.concern(context, project, ticket, change)
    ):
        return None
    return reviewers.next_step(context, project, ticket, change)


def _refused_by_hook(context: Trees, project: ProjectContext, ticket: Ticket) -> Step | None:
    facts = person_hooks.ticket_facts(ticket)
    text = person_hooks.refusal(context, project.record, HookKind.TASK_COMPLETED, facts)
    if text is None:
        return None
    return next_try(ticket, "a hook of the person sent it back", feedback.sent_back_by_hook(text))


def refuse_broken(tested: CheckedCommit) -> None:
    """A check that could not run proves nothing either way."""
    for receipt in tested.receipts:
        if receipt.verdict is CheckResult.BROKEN:
            raise ChecksBroken(f"The check `{receipt.command}` could not be run: {receipt.tail.strip()[-600:]}")


def confirmed(
    context: Context, project: ProjectContext, tested: CheckedCommit, cancel: CancelToken | None = None
) -> CheckedCommit:
    """The results: red only if it failed twice, green after a red only twice. Raises ChecksBroken if one could not be
    run."""
    refuse_broken(tested)
    confirmed = execution.confirm(context, project, tested, cancel)
    refuse_broken(confirmed)
    return confirmed


def _checkpoint(context: Context, project: ProjectContext, ticket: Ticket, cancel: CancelToken) -> _Judged:
    if (gone := candidates.waits(context, ticket)) is not None:
        return _Judged(step=gone)
    target = project.target
    own = (*execution.proofs(ticket.id, ticket.spec.proofs), *candidates.wanted(context, ticket))
    wanted = (*execution.project_checks(project), *own)
    tested = confirmed(
        context, project, execution.test_unless_cancelled(context, project, target, wanted, cancel), cancel
    )
    if tested.green:
        return _Judged(step=Confirm(target, unchecked=not wanted))
    failed = Fail(what_failed(tested.red, " on the landed code"), cause=Cause.CHECKS)
    return _Judged(step=failed, red=tested.red)


def _proofs(context: Context, project: ProjectContext, ticket: Ticket, cancel: CancelToken) -> Step:
    target = project.target
    merged = candidate(context, project, target, ticket, by_definition=True)
    if isinstance(merged, MergeConflict):
        found = already_there(context, project, ticket, cancel)
        return found or candidates.sent_back_for_conflict(context, project, ticket, target, merged)
    kept = candidates.kept(context, project, (ticket,), target, merged.commit)
    proofs = (*kept, *execution.proofs(ticket.id, ticket.spec.proofs))
    tested = confirmed(
        context, project, execution.test_unless_cancelled(context, project, merged.commit, proofs, cancel), cancel
    )
    tested = _without_red_on_target(context, project, ticket, target, tested, cancel)
    if tested.green:
        return Prove()
    return sent_back_for_red(context, ticket, target, merged.tree, tested)


def _without_red_on_target(
    context: Context, project: ProjectContext, ticket: Ticket, target: str, tested: CheckedCommit, cancel: CancelToken
) -> CheckedCommit:
    """Proofs of landed tickets that fail without the change, too, say nothing about it: they end."""
    red = {one.command for one in tested.red if one.ticket != ticket.id}
    foreign = [want for want in tested.wanted if want.check.command in red]
    if not foreign:
        return tested
    again = execution.test_unless_cancelled(context, project, target, foreign, cancel)
    alone = confirmed(context, project, again, cancel)
    gone = {one.command for one in alone.red}
    with context.store.write() as tx:
        for owner in sorted({one.ticket for one in alone.red if one.ticket is not None}):
            past_tickets.retire(tx, project.id, owner, "it fails on the target itself, without any change")
    return replace(
        tested,
        receipts=tuple(one for one in tested.receipts if one.command not in gone),
        wanted=tuple(one for one in tested.wanted if one.check.command not in gone),
    )


def sent_back_for_red(context: Board, ticket: Ticket, target: str, tree: str, tested: CheckedCommit) -> TryAgain | Fail:
    """The next attempt starts from the tree that was red, so that the agent sees the same failure.

    No attempt makes a proof pass that is no command here, or that no file decides: a person is asked.
    """
    moved_on = ticket.change is not None and ticket.change.base != target
    ground = StartPoint(base=target, tree=tree) if moved_on else None
    with context.store.read() as tx:
        owners = tickets.get_many(tx, {one.ticket for one in tested.red if one.ticket not in (None, ticket.id)})
    why, report = what_failed(tested.red), feedback.checks_failed(tested.red, owners=owners)
    if owners:
        why = f"it breaks what ticket {owners[0].id} ({owners[0].spec.title}) proved; {why}"
    own = [one for one in tested.red if one.command in ticket.spec.proofs]
    never = [f"`{one.command}` can never pass" for one in own if never_passes(one.command)]
    never += [
        f"`{one.command}` cannot run: {one.tail.strip().splitlines()[-1]}"
        for one in own
        if cannot_run(one.exit_code, one.tail)
    ]
    if never:
        why = f"its proof {never[0]}"
        return Fail(why, report, ground, Cause.CHECKS, why=why, asks=True)
    return next_try(ticket, why, report, ground, Cause.CHECKS)


def already_there(
    context: Context, project: ProjectContext, ticket: Ticket, cancel: CancelToken, timeout: float = Check.timeout
) -> AlreadyThere | None:
    """The step of a ticket whose proofs say so. Raises Cancelled."""
    if not candidates.may_be_there(context, project, ticket):
        return None
    target = project.target
    wanted = execution.proofs(ticket.id, ticket.spec.proofs, timeout)
    if not execution.test_unless_cancelled(context, project, target, wanted, cancel).green:
        return None

    def passes(commit: str) -> bool:
        return _passes(context, project, commit, wanted, cancel)

    # An empty change brought nothing.
    hub = project.hub
    landed = [one for one in candidates.landed_since(context, ticket) if hub.tree_of(one[1]) != hub.tree_of(one[2])]
    if not landed:
        return None
    low, high = 0, len(landed) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(landed[middle][1]) else (middle + 1, high)
    other, commit, before = landed[low]
    # Proofs that were green before it show nothing, or your own commits brought it.
    if passes(before) or (low == len(landed) - 1 and not passes(commit)):
        return None
    return candidates.brought_by(context, project, ticket, other)


def before_start(context: Context, project: ProjectContext, ticket: Ticket, cancel: CancelToken) -> AlreadyThere | None:
    """The step of a ticket without an attempt whose work is there. If it would start on the proven change of another
    one that brings its work, it waits until that one lands. Raises Cancelled.
    """
    behind, _ = context.live.tried.get(ticket.id) or (0, False)
    # No agent waits long for proofs that bring nothing.
    timeout = project.config.conflicts.keep_proofs or Check.timeout
    if not behind:
        return already_there(context, project, ticket, cancel, timeout)
    with context.store.read() as tx:
        change = tickets.get(tx, behind).change
    wanted = execution.proofs(ticket.id, ticket.spec.proofs, timeout)
    if change is None or not candidates.proofs_may_tell(project, ticket):
        return None
    green = execution.test_unless_cancelled(context, project, change.commit, wanted, cancel).green
    if green and not _passes(context, project, change.base, wanted, cancel):
        context.live.tried.update({ticket.id: (behind, True)})
    return None


def _passes(
    context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck], cancel: CancelToken
) -> bool:
    """Without a receipt: it says nothing about a change."""
    runs = (
        execution.try_out(context, project, commit, one.check, why="already there", cancel=cancel) for one in wanted
    )
    return all(code == 0 for code in runs)


def red_proofs(context: Context, project: ProjectContext, ticket: Ticket, cancel: CancelToken) -> tuple[Receipt, ...]:
    """Of a ticket whose agent left the code as it was. Raises Cancelled."""
    wanted = execution.proofs(ticket.id, ticket.spec.proofs)
    if not wanted or ticket.base is None:
        return ()
    return execution.test_unless_cancelled(context, project, ticket.base, wanted, cancel).red


# Proof by reversal of one change: runs its proofs on the code without it, and without each of its hunks.
#
# These runs leave no receipt: they prove nothing about a commit that could land. They are bounded in time, and the
# result says how many hunks were not tried.

_ROOM = 5.0
"""A command may take so many times what it took with the change, and at least so many seconds."""
_LEAST = 1.0
"""Seconds: with less left, no further run starts."""


def proof_wanted(project: ProjectContext, ticket: Ticket) -> bool:
    """Whether the project asks for it, and there is something to run."""
    settings, bound = project.config.reversal, ticket.spec.proofs or ticket.spec.bound
    return bool((settings.proofs and bound) or (settings.seconds and (bound or project.config.checks)))


def prove_by_revert(
    context: Context, project: ProjectContext, ticket: Ticket, cancel: CancelToken
) -> tuple[str, RevertProof] | None:
    """The tested tree and the result; None if that is known already, or there is nothing to do. Raises Cancelled."""
    target = project.target
    merged = candidate(context, project, target, ticket, by_definition=True)
    if (
        not proof_wanted(project, ticket)
        or isinstance(merged, MergeConflict)
        or merged.tree == project.hub.tree_of(target)
    ):
        return None
    with context.store.read() as tx:
        if _known(tx, ticket.id, merged.tree):
            return None
    return merged.tree, _Trial(context, project, ticket, target, merged, cancel).run()


def record_proof(tx: Transaction, ticket: Ticket, tree: str, found: RevertProof) -> None:
    data = {
        "tree": tree,
        "idle": list(found.idle),
        "red": list(found.red),
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
        self._until = 0.0
        settings, named = project.config.reversal, {check_named(one.by) for one in ticket.spec.bound}
        self._proofs = [want.check for want in execution.proofs(ticket.id, ticket.spec.proofs)]
        self._bound = [*self._proofs, *(check for check in project.config.checks if check.name in named)]
        self._checks: Sequence[Check] = (self._proofs or project.config.checks) if settings.seconds else ()

    def run(self) -> RevertProof:
        change = diffs.read(self._project.hub.patch(self._target, self._merged.commit))
        settings = self._project.config.reversal
        alone = self._bound or self._checks
        tests = new_tests(change, [check.command for check in alone])
        said: dict[str, bool | None] = {}
        if tests or self._bound:
            before = partial_trees.with_files(self._project.hub, self._target, self._merged.commit, tests)
            self._until = time.monotonic() + max(settings.proofs, settings.seconds)
            said = {check.command: self._without(before, check) for check in alone}
        self._until = time.monotonic() + settings.seconds
        unproven: list[RevertHunk] = []
        tried = 0
        all_pieces = revertable_hunks(change) if self._checks else ()
        for piece in all_pieces:
            tree = partial_trees.without(self._project.hub, self._merged.commit, piece.patch)
            passed = None if tree is None else self._passes(tree, self._checks)
            if passed is None and self._time_left() < _LEAST:
                break
            tried += 1
            if passed:
                unproven.append(piece)
        return RevertProof(
            idle=tuple(command for command, passed in said.items() if passed),
            red=tuple(command for command, passed in said.items() if passed is False),
            unproven=tuple(unproven),
            tried=tried,
            left=len(all_pieces) - tried,
        )

    def _without(self, before: str, check: Check) -> bool | None:
        """Whether it passes without the change; None where that takes longer than there is time."""
        there = {before, self._merged.tree, self._project.hub.tree_of(self._target)}
        with self._context.store.read() as tx:
            known = [one for tree in there for one in receipts.for_tree(tx, self._project.id, tree)]
        mine = [one for one in known if one.command == check.command]
        if any(one.tree == before and one.verdict is CheckResult.GREEN for one in mine):
            return True
        took = max((one.duration for one in mine), default=0.0)
        if took > self._time_left():
            return None
        return self._passes(before, [replace(check, timeout=min(check.timeout, max(_ROOM, _ROOM * took)))])

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
                return None if code is None else False
        return True
