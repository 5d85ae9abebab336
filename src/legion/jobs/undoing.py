"""Taking a landed ticket back: its change in reverse, as a change of its own. No agent is needed for that."""

from __future__ import annotations

from legion.domain.tickets import Cause, Change, Fail, Propose, Ticket
from legion.git.merging import Candidate, Conflict
from legion.git.trailers import with_trailers
from legion.jobs.candidates import message, trailers
from legion.jobs.saving import Saved
from legion.jobs.traces import before, reverse
from legion.jobs.world import Workshop, World
from legion.store import tickets


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


def conflict_words(conflict: Conflict) -> str:
    named = ", ".join(file.path for file in conflict.files[:3])
    return f"what landed after it changed the same lines ({named})"
