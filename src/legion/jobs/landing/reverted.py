"""Landed work that is removed from the target or restored to it, and a landed change in reverse.

The target loses work only where it follows the person's branch. A rebase keeps the same work under other commits, so a
missing commit proves nothing: the work is gone if nothing of it is left to revert.
"""

from __future__ import annotations

from collections.abc import Iterable

from legion.domain.events import EventKind
from legion.domain.landing.queue import LandingIntent
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import Ticket
from legion.git.merge import candidates
from legion.git.merge.candidates import MergeCandidate, MergeConflict
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.save import AUTHOR
from legion.store import events
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction, Transaction

LEFT = "no longer in the target, which was reset with your branch"


def before(tx: ReadTransaction, project: ProjectContext, landed: Ticket) -> str:
    """The commit that its change was put on. Landings of earlier releases do not record it: then it is the first
    parent.
    """
    recorded = [event.data.get("before") for event in events.of_ticket(tx, landed.id) if event.kind is EventKind.LANDED]
    if recorded and isinstance(recorded[-1], str):
        return recorded[-1]
    parent = project.hub.resolve(f"{landed.landed}^1")
    assert parent is not None, "a landed commit has the former target as its parent"
    return parent


def reverse(
    project: ProjectContext, target: str, landed: Ticket, stood_on: str, *, text: str, when: int
) -> MergeCandidate | MergeConflict | None:
    """Its change reverted on `target`; None where nothing of it is left there."""
    assert landed.landed is not None, "a ticket that is done has landed"
    return candidates.revert(project.hub, target, landed.landed, stood_on, message=text, author=AUTHOR, when=when)


def removed_from_target(
    context: Board, project: ProjectContext, *, old: str, new: str
) -> tuple[tuple[Ticket, str], ...]:
    """Tickets whose work this move removes from the target, in the order in which they landed, each with the commit
    that its change was put on.
    """
    gone = {one.commit: place for place, one in enumerate(project.hub.commits_between(new, old))}
    if not gone:
        return ()
    with context.store.read() as tx:
        landed = [one for one in tickets.landed(tx, project.id, noted=False) if one.landed in gone]
        landed.sort(key=lambda one: gone[one.landed or ""])
        return tuple((one, before(tx, project, one)) for one in _without(tx, project, new, landed))


def restored_to_target(context: Board, project: ProjectContext, intent: LandingIntent) -> tuple[int, ...]:
    """Tickets whose removed work this move restores to the target."""
    with context.store.read() as tx:
        away = tickets.landed(tx, project.id, noted=True)
        still = {one.id for one in _without(tx, project, intent.commit, away)}
    return tuple(one.id for one in away if one.id not in still)


def record(tx: Transaction, project: ProjectContext, commit: str, left: Iterable[int], back: Iterable[int]) -> None:
    for kind, numbers, reason in ((EventKind.LEFT_BEHIND, left, LEFT), (EventKind.BROUGHT_BACK, back, "")):
        for number in numbers:
            tickets.note(tx, number, reason)
            data = {"target": commit, "why": reason, "rule": Rule.TARGET_FOLLOWS.value}
            tx.record(kind, project=project.id, ticket=number, data=data)


def _without(tx: ReadTransaction, project: ProjectContext, target: str, landed: Iterable[Ticket]) -> Iterable[Ticket]:
    for one in landed:
        made = reverse(project, target, one, before(tx, project, one), text="probe", when=int(one.moved_at))
        if made is None:
            yield one
