"""Who reads a ticket's change, with which model, and why: those of its team, and whom the project's policy adds."""

from __future__ import annotations

from legion.domain.evidence import unproven
from legion.domain.protection import stopped_by
from legion.domain.reviewing import Touch, risks
from legion.domain.teams import REVIEWER, Stage
from legion.domain.tickets import AskReview, Change, Prove, Ticket
from legion.domain.wishes import Policy
from legion.jobs import climbing, permission, teams
from legion.jobs.world import Workshop, World


def stage(world: World, shop: Workshop, ticket: Ticket, key: str) -> Stage:
    """The reader of that key: of the ticket's team, else the reviewer."""
    found = teams.of_ticket(world, ticket).stage(key)
    return found if found is not None else teams.reviewer(world, shop)


def rounds(world: World, shop: Workshop, ticket: Ticket) -> int:
    """How often readers may send it back before a person is asked."""
    own = teams.of_ticket(world, ticket)
    return own.rounds if own.readers else shop.config.review.rounds


def model(world: World, ticket: Ticket, reader: Stage) -> str:
    """The reader's own, else the person's choice, else the strongest that did not write the change."""
    chosen = reader.role.model or world.user.reviewer.model
    if chosen:
        return chosen
    wrote = climbing.model(world, ticket).casefold()
    others = [name for name in world.user.models.escalation if not wrote or name.casefold() not in wrote]
    return others[-1] if others else ""


def next_step(world: World, shop: Workshop, ticket: Ticket, change: Change) -> Prove | AskReview:
    """Where a change goes on whose proofs are green."""
    if ticket.wish.undoes is not None:
        # What takes a landed change back is what a person asked for, to the letter.
        return Prove()
    own = tuple(one.key for one in teams.of_ticket(world, ticket).readers)
    why = _why(shop, ticket, change)
    added = (REVIEWER,) if why and REVIEWER not in own else ()
    reasons = "; ".join(filter(None, ("its team reads every change" if own else "", why)))
    if own or (added and shop.config.review.required):
        return AskReview((*own, *added), reasons)
    return Prove(added, reasons)


def touch(shop: Workshop, ticket: Ticket, change: Change) -> Touch:
    """What is known of the change before anybody reads it."""
    files = shop.hub.changed_files(change.base, change.commit)
    checks = [check.command for check in shop.config.checks]
    return Touch(
        paths=tuple(file.path for file in files),
        lines=sum((file.additions or 0) + (file.deletions or 0) for file in files),
        protected=stopped_by(
            [permission.touched(file) for file in files], shop.config.protected.paths, (), checks, ticket.wish.proofs
        ),
        weakened=tuple(dict.fromkeys(one.path for one in permission.found_weak(shop, ticket, change))),
        unproven=unproven(ticket.wish.criteria, ticket.wish.bound),
    )


def _why(shop: Workshop, ticket: Ticket, change: Change) -> str:
    """Why the reviewer reads it; empty where it does not."""
    policy = ticket.wish.review or shop.config.review.policy
    if policy is Policy.OFF:
        return ""
    if policy is Policy.ALWAYS:
        return "every change is read" if ticket.wish.review is None else "the ticket asks for it"
    return "; ".join(risks(touch(shop, ticket, change), shop.config.review.paths))
