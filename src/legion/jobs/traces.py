"""What of a landed ticket is in the target: its change in reverse, and the tickets whose work a target left behind.

A target goes back only where it follows the person's branch. Whoever rebased has the same work under other commits, so
a commit that is gone proves nothing: what counts is that nothing is left to be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable

from legion.domain.events import Kind
from legion.domain.landing import Landing
from legion.domain.rules import Rule
from legion.domain.tickets import Ticket
from legion.git import merging
from legion.git.merging import Candidate, Conflict
from legion.jobs.saving import AUTHOR
from legion.jobs.world import Workshop, World
from legion.store import events, tickets
from legion.store.database import ReadTransaction, Transaction

LEFT = "not in the target any more, which went back with your branch"


def before(tx: ReadTransaction, shop: Workshop, landed: Ticket) -> str:
    """The commit on which its change was put. Landings of earlier releases do not say: then it is the first parent."""
    told = [event.data.get("before") for event in events.of_ticket(tx, landed.id) if event.kind is Kind.LANDED]
    if told and isinstance(told[-1], str):
        return told[-1]
    parent = shop.hub.resolve(f"{landed.landed}^1")
    assert parent is not None, "a landed commit stands on the target before it"
    return parent


def reverse(
    shop: Workshop, target: str, landed: Ticket, stood_on: str, *, text: str, when: int
) -> Candidate | Conflict | None:
    """Its change taken back on `target`; None where nothing of it is left there."""
    assert landed.landed is not None, "a ticket that is done has landed"
    return merging.revert(shop.hub, target, landed.landed, stood_on, message=text, author=AUTHOR, when=when)


def left_behind(world: World, shop: Workshop, intent: Landing) -> tuple[int, ...]:
    """Tickets whose work the target loses by this move."""
    gone = {one.commit for one in shop.hub.commits_between(intent.commit, intent.base)}
    if not gone:
        return ()
    with world.store.read() as tx:
        landed = [one for one in tickets.landed(tx, shop.project.id, noted=False) if one.landed in gone]
        return tuple(_without(tx, shop, intent.commit, landed))


def brought_back(world: World, shop: Workshop, intent: Landing) -> tuple[int, ...]:
    """Of the tickets that a target left behind, those whose work it has again by this move."""
    with world.store.read() as tx:
        away = tickets.landed(tx, shop.project.id, noted=True)
        still = set(_without(tx, shop, intent.commit, away))
    return tuple(one.id for one in away if one.id not in still)


def record(tx: Transaction, shop: Workshop, commit: str, left: Iterable[int], back: Iterable[int]) -> None:
    for kind, numbers, reason in ((Kind.LEFT_BEHIND, left, LEFT), (Kind.BROUGHT_BACK, back, "")):
        for number in numbers:
            tickets.note(tx, number, reason)
            data = {"target": commit, "why": reason, "rule": Rule.TARGET_FOLLOWS.value}
            tx.record(kind, project=shop.project.id, ticket=number, data=data)


def _without(tx: ReadTransaction, shop: Workshop, target: str, landed: Iterable[Ticket]) -> Iterable[int]:
    for one in landed:
        made = reverse(shop, target, one, before(tx, shop, one), text="a look", when=int(one.moved_at))
        if made is None:
            yield one.id
