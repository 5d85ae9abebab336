"""The check job of one ticket: its proofs on its change, or, for a checkpoint, the project's checks on the target."""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.attempts import next_try
from legion.domain.checks import Receipt, Verdict
from legion.domain.errors import LegionError
from legion.domain.jobs import Claim
from legion.domain.reversal import Reversal
from legion.domain.tickets import AskReview, Cause, Change, Confirm, Fail, Ground, Prove, State, Step, Ticket, TryAgain
from legion.git.merging import Conflict
from legion.jobs import acceptance, checking, climbing, feedback, fixing, permission, readers, reversal
from legion.jobs.candidates import candidate
from legion.jobs.checking import Tested
from legion.jobs.permission import Concern
from legion.jobs.world import Workshop, World
from legion.store import jobs, tickets, verdicts
from legion.store.database import Transaction
from legion.system import crash
from legion.system.crash import Point


class ChecksBroken(LegionError):
    """The checks could not be run at all. The job rests and tries again; nobody is blamed."""


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """What is known when all has run; what follows is settled in the transaction that moves the ticket."""

    step: Step
    red: tuple[Receipt, ...] = ()
    """Of a checkpoint."""
    about: Concern | None = None
    taken_back: tuple[str, Reversal] | None = None


def check(world: World, claim: Claim) -> None:
    with world.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
    shop = world.workshop(ticket.project)
    judged = _judge(world, shop, ticket) if ticket.state is State.CHECKING else None
    crash.reach(Point.CHECK_BEFORE_CONCLUDE)
    with world.store.write() as tx:
        if jobs.still_mine(tx, claim):
            if judged is not None and tickets.get(tx, ticket.id).version == ticket.version:
                climbing.take(world, tx, ticket, _settled(world, shop, tx, ticket, judged))
            jobs.finish(tx, claim)
    crash.reach(Point.CHECK_AFTER_CONCLUDE)


def _judge(world: World, shop: Workshop, ticket: Ticket) -> _Judged:
    if ticket.wish.checkpoint:
        return _checkpoint(world, shop, ticket)
    about = permission.concern(world, shop, ticket, ticket.change) if ticket.change is not None else None
    if about is not None:
        with world.store.read() as tx:
            no = permission.refused(tx, ticket, about)
        if no is not None:
            return _Judged(step=no)
    step = _proofs(world, shop, ticket)
    if not isinstance(step, Prove) or ticket.change is None:
        return _Judged(step=step)
    return _Judged(
        step=readers.next_step(world, shop, ticket, ticket.change),
        about=about,
        taken_back=reversal.prove(world, shop, ticket),
    )


def _settled(world: World, shop: Workshop, tx: Transaction, ticket: Ticket, judged: _Judged) -> Step:
    step = judged.step
    if judged.taken_back is not None:
        reversal.record(tx, ticket, *judged.taken_back)
    if isinstance(step, Prove) and (asked := [one.reader for one in verdicts.pending(tx, ticket) if one.binding]):
        # A person asked for it meanwhile.
        step = AskReview((*step.readers, *asked), step.why)
    if judged.about is not None:
        step = permission.settle(tx, ticket, judged.about, world.user.questions.answer_within) or step
    if isinstance(step, Fail) and judged.red:
        step = fixing.instead(world, shop, tx, ticket, step, judged.red)
    return step


def at_once(world: World, shop: Workshop, ticket: Ticket, change: Change) -> Prove | AskReview | None:
    """Where it goes on; None where something has to be run on it before, or somebody has to be asked."""
    if ticket.wish.proofs or reversal.wanted(shop, ticket) or permission.concern(world, shop, ticket, change):
        return None
    return readers.next_step(world, shop, ticket, change)


def refuse_broken(tested: Tested) -> None:
    """A check that could not run proves nothing either way."""
    for receipt in tested.receipts:
        if receipt.verdict is Verdict.BROKEN:
            raise ChecksBroken(f"The check `{receipt.command}` could not be run: {receipt.tail.strip()[-600:]}")


def told(world: World, shop: Workshop, tested: Tested) -> Tested:
    """What the checks say, red only where they say so twice. Raises ChecksBroken where they say nothing."""
    refuse_broken(tested)
    confirmed = checking.confirm(world, shop, tested)
    refuse_broken(confirmed)
    return confirmed


def _checkpoint(world: World, shop: Workshop, ticket: Ticket) -> _Judged:
    if (gone := acceptance.waits(world, ticket)) is not None:
        return _Judged(step=gone)
    target = shop.target
    own = (*checking.proofs(ticket.id, ticket.wish.proofs), *acceptance.wanted(world, ticket))
    wanted = (*checking.project_checks(shop), *own)
    tested = told(world, shop, checking.test(world, shop, target, wanted))
    if tested.green:
        return _Judged(step=Confirm(target, unchecked=not wanted))
    named = ", ".join(f"`{receipt.label}`" for receipt in tested.red)
    failed = Fail(f"checks failed on the landed code: {named}", cause=Cause.CHECKS)
    return _Judged(step=failed, red=tested.red)


def _proofs(world: World, shop: Workshop, ticket: Ticket) -> Step:
    target = shop.target
    merged = candidate(world, shop, target, ticket)
    if isinstance(merged, Conflict):
        return sent_back_for_conflict(ticket, target, merged)
    proofs = checking.proofs(ticket.id, ticket.wish.proofs)
    tested = told(world, shop, checking.test(world, shop, merged.commit, proofs))
    if tested.green:
        return Prove()
    return sent_back_for_red(ticket, target, merged.tree, tested)


def sent_back_for_conflict(ticket: Ticket, target: str, conflict: Conflict) -> TryAgain | Fail:
    named = ", ".join(file.path for file in conflict.files[:3])
    ground = Ground(base=target, tree=conflict.tree)
    why = f"it conflicts with what landed meanwhile ({named})"
    return next_try(ticket, why, feedback.conflict(conflict.files), ground, Cause.CONFLICT)


def sent_back_for_red(ticket: Ticket, target: str, tree: str, tested: Tested) -> TryAgain | Fail:
    """The next attempt stands on the very tree that was red, so that the agent sees what we saw."""
    named = ", ".join(f"`{receipt.label}`" for receipt in tested.red)
    moved_on = ticket.change is not None and ticket.change.base != target
    ground = Ground(base=target, tree=tree) if moved_on else None
    return next_try(ticket, f"checks failed: {named}", feedback.red(tested.red), ground, Cause.CHECKS)
