"""A red checkpoint gets a fixing ticket and waits for it, so that nothing behind it moves before the code is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from legion.domain.checks import Receipt
from legion.domain.events import Kind
from legion.domain.evidence import Bound
from legion.domain.rules import Rule
from legion.domain.tickets import Cause, Fail, Ticket, TryAgain
from legion.domain.wishes import Wish
from legion.jobs import feedback, teams
from legion.jobs.agents import NoProgram, agent
from legion.jobs.world import Workshop, World
from legion.store import crews, events, tickets
from legion.store.database import ReadTransaction, Transaction

_LONGEST_TITLE = 80


def instead(
    world: World, shop: Workshop, tx: Transaction, checkpoint: Ticket, failed: Fail, red: Sequence[Receipt]
) -> TryAgain | Fail:
    """The checkpoint's turn comes again after its fixing ticket; the end, where there were enough of them."""
    # What an agent dispatches costs and may do what that agent gives, and a checkpoint gives nothing.
    most = 0 if checkpoint.wish.dispatcher else shop.config.checkpoints.fixes
    before = _fixes(tx, checkpoint)
    if before >= most:
        tried = f" after {before} fixing ticket{'' if before == 1 else 's'}" if before else ""
        return Fail(f"{failed.reason}{tried}", cause=Cause.CHECKS)
    crew = teams.crew(world, shop, "")
    builder = crew.builder.role
    try:
        climbs = agent(world, shop.config, "", builder.driver).argv is None
    except NoProgram as nobody:
        return Fail(f"{failed.reason}; nobody can mend it: {nobody.message}", cause=Cause.CHECKS)
    wish = _wish(tx, shop, checkpoint, red, climbs=climbs)
    wish = replace(wish, team=crew.team, crew=crews.keep(tx, crew), model=builder.model, driver=builder.driver)
    fix = tickets.create(tx, checkpoint.project, wish, rule=Rule.RED_IS_MENDED_FIRST)
    tickets.come_after(tx, checkpoint.id, fix.id)
    return TryAgain(f"ticket {fix.id} mends it: {failed.reason}", feedback.red(red), cause=Cause.CHECKS)


def _fixes(tx: ReadTransaction, checkpoint: Ticket) -> int:
    """How many it had since a person last took it up."""
    steps = [event.data.get("step") for event in events.of_ticket(tx, checkpoint.id) if event.kind is Kind.TICKET_MOVED]
    taken_up = max((at for at, step in enumerate(steps) if step == "retry"), default=0)
    return steps[taken_up:].count("tryagain")


def _wish(tx: ReadTransaction, shop: Workshop, checkpoint: Ticket, red: Sequence[Receipt], *, climbs: bool) -> Wish:
    wish = checkpoint.wish
    own = tuple(dict.fromkeys((*wish.proofs, *(receipt.command for receipt in red if not receipt.held_out))))
    failing = [receipt.label for receipt in red]
    return Wish(
        title=f"Mend what checkpoint {checkpoint.id} found: {wish.title[:_LONGEST_TITLE]}",
        text=f"The landed code fails a checkpoint. Mend the code.\n\n{feedback.red(red, landed=True)}",
        context=_context(tx, checkpoint),
        criteria="\n".join(f"{label} passes" for label in failing),
        proofs=own,
        bound=tuple(
            Bound(criterion=place, by=receipt.command) for place, receipt in enumerate(red) if not receipt.held_out
        ),
        acceptance=wish.acceptance,
        epic=wish.epic,
        priority=wish.priority + 1,
        max_attempts=shop.config.agents.attempts,
        climbs=climbs,
    )


def _context(tx: ReadTransaction, checkpoint: Ticket) -> str:
    """What landed before it: each was green alone."""
    known = tickets.states_of(tx, checkpoint.wish.after)
    before = [f"- {one.id}: {one.wish.title}" for one in tickets.get_many(tx, sorted(known))]
    return "\n".join(["It came after these tickets, each of which passed by itself:", *before]) if before else ""
