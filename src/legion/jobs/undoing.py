"""Taking a landed ticket back: its change in reverse, as a change of its own. No agent is needed for that."""

from __future__ import annotations

from legion.domain.events import Kind
from legion.domain.tickets import Cause, Change, Fail, Propose, Ticket
from legion.git import merging
from legion.git.merging import Candidate, Conflict
from legion.git.trailers import with_trailers
from legion.jobs.candidates import message, trailers
from legion.jobs.saving import AUTHOR, Saved
from legion.jobs.world import Workshop, World
from legion.store import events, tickets
from legion.store.database import ReadTransaction


def undo(world: World, shop: Workshop, ticket: Ticket) -> tuple[Propose | Fail, Saved | None]:
    """The change that a ticket of this kind proposes, made on the target as it is now."""
    assert ticket.wish.undoes is not None, "only such a ticket comes here"
    with world.store.read() as tx:
        landed = tickets.get(tx, ticket.wish.undoes)
        stood_on = before(tx, shop, landed)
    target = shop.target
    text = with_trailers(message(ticket).encode(), trailers(world, shop, ticket)).decode()
    made = reverse(shop, target, landed, stood_on, text=text, when=int(ticket.moved_at))
    match made:
        case Candidate(commit=commit, tree=tree):
            shop.hub.keep(f"wip/{ticket.id}/undo-{ticket.attempt}", commit)
            saved = Saved(commit=commit, tree=tree, changed=True, nested=(), left_out=())
            return Propose(Change(base=target, commit=commit)), saved
        case Conflict():
            return Fail(f"it cannot be taken back: {conflict_words(made)}", cause=Cause.CONFLICT), None
        case None:
            return Fail(f"nothing of ticket {landed.id} is left in the target"), None


def reverse(
    shop: Workshop, target: str, landed: Ticket, stood_on: str, *, text: str, when: int
) -> Candidate | Conflict | None:
    assert landed.landed is not None, "a ticket that is done has landed"
    return merging.revert(shop.hub, target, landed.landed, stood_on, message=text, author=AUTHOR, when=when)


def before(tx: ReadTransaction, shop: Workshop, landed: Ticket) -> str:
    """The commit on which its change was put. Landings of earlier releases do not say: then it is the first parent."""
    told = [event.data.get("before") for event in events.of_ticket(tx, landed.id) if event.kind is Kind.LANDED]
    if told and isinstance(told[-1], str):
        return told[-1]
    parent = shop.hub.resolve(f"{landed.landed}^1")
    assert parent is not None, "a landed commit stands on the target before it"
    return parent


def conflict_words(conflict: Conflict) -> str:
    named = ", ".join(file.path for file in conflict.files[:3])
    return f"what landed after it changed the same lines ({named})"
