"""The check job: runs a ticket's proofs on its change, or for a checkpoint the project's checks on the target."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from legion.domain.checks import CheckResult, Receipt, what_failed
from legion.domain.errors import LegionError
from legion.domain.hooks import HookKind
from legion.domain.landing.revert_proof import RevertProof
from legion.domain.scheduling.decide import Claim
from legion.domain.tickets.attempts import next_try, next_try_after_conflict
from legion.domain.tickets.ticket import (
    AskReview,
    Cause,
    Change,
    Confirm,
    Fail,
    Prove,
    StartPoint,
    State,
    Step,
    Ticket,
    TryAgain,
)
from legion.git.merge.candidates import MergeConflict
from legion.jobs import person_hooks
from legion.jobs.attempts import escalation, feedback
from legion.jobs.board import Board
from legion.jobs.checks import approvals, execution, fix_tickets, held_out, revert_proof, reviewers
from legion.jobs.checks.approvals import ApprovalConcern
from legion.jobs.checks.candidates import candidate
from legion.jobs.checks.execution import CheckedCommit
from legion.jobs.checks.ticket_watch import cancelling
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace.cancellation import Cancelled, CancelToken
from legion.store.board import tickets, verdicts
from legion.store.database.transactions import Transaction
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
    if ticket.state is State.CHECKING:
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


def _judge(context: Context, project: ProjectContext, ticket: Ticket, cancel: CancelToken) -> _Judged:
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
        revert_proof=revert_proof.prove(context, project, ticket, cancel),
    )


def _settled(context: Board, project: ProjectContext, tx: Transaction, ticket: Ticket, judged: _Judged) -> Step:
    step = judged.step
    if judged.revert_proof is not None:
        revert_proof.record(tx, ticket, *judged.revert_proof)
    if isinstance(step, Prove) and (asked := [one.reviewer for one in verdicts.pending(tx, ticket) if one.binding]):
        # A person asked for a review meanwhile.
        step = AskReview((*step.readers, *asked), step.why)
    if judged.about is not None:
        step = approvals.settle(tx, ticket, judged.about, context.user.questions.answer_within) or step
    if isinstance(step, Fail) and judged.red:
        step = fix_tickets.instead(context, project, tx, ticket, step, judged.red)
    return step


def next_step_without_checks(
    context: Board, project: ProjectContext, ticket: Ticket, change: Change
) -> Prove | AskReview | None:
    """The step of a change that needs no check and no approval; None for any other."""
    if (
        ticket.spec.proofs
        or person_hooks.is_set(context, HookKind.TASK_COMPLETED)
        or revert_proof.wanted(project, ticket)
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
    if (gone := held_out.waits(context, ticket)) is not None:
        return _Judged(step=gone)
    target = project.target
    own = (*execution.proofs(ticket.id, ticket.spec.proofs), *held_out.wanted(context, ticket))
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
    merged = candidate(context, project, target, ticket)
    if isinstance(merged, MergeConflict):
        return sent_back_for_conflict(ticket, target, merged)
    proofs = execution.proofs(ticket.id, ticket.spec.proofs)
    tested = confirmed(
        context, project, execution.test_unless_cancelled(context, project, merged.commit, proofs, cancel), cancel
    )
    if tested.green:
        return Prove()
    return sent_back_for_red(ticket, target, merged.tree, tested)


def sent_back_for_conflict(ticket: Ticket, target: str, conflict: MergeConflict) -> TryAgain | Fail:
    named = ", ".join(file.path for file in conflict.files[:3])
    ground = StartPoint(base=target, tree=conflict.tree)
    why = f"it conflicts with what landed meanwhile ({named})"
    return next_try_after_conflict(ticket, why, feedback.conflict(conflict.files), ground)


def sent_back_for_red(ticket: Ticket, target: str, tree: str, tested: CheckedCommit) -> TryAgain | Fail:
    """The next attempt starts from the tree that was red, so that the agent sees the same failure."""
    moved_on = ticket.change is not None and ticket.change.base != target
    ground = StartPoint(base=target, tree=tree) if moved_on else None
    return next_try(ticket, what_failed(tested.red), feedback.checks_failed(tested.red), ground, Cause.CHECKS)
