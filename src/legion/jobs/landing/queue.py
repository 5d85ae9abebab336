"""The merge queue as it stands: who waits, in which order, and how many are tried together next.

Nothing of it has a table of its own. The size of a change is git's to tell, who was passed by follows from the
landings, and how many are tried together was said by the last event about that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from legion.domain.events import EventKind
from legion.domain.landing.queue import QueueEntry, ordered, passed_by, room_after
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.context import Context, ProjectContext
from legion.store import events
from legion.store.board import landings, tickets
from legion.store.database.transactions import ReadTransaction

_LANDINGS = 100
"""So many last ones tell who was passed by."""
_EVENTS = 20_000
"""What was learned longer ago than that tells nothing about today's changes."""


class MergeQueue:
    """One project's, for as long as its land job runs."""

    def __init__(self, context: Context, project: int) -> None:
        self._context = context
        self._reds = context.reds
        with context.store.read() as tx:
            said = events.latest(tx, project, EventKind.BATCH_SIZE, within=_EVENTS)
        self._room = None if said is None else int(str(said.data["to"]))

    def room(self, project_context: ProjectContext) -> int:
        """How many changes the next batch may hold."""
        most = project_context.config.landing.batch
        return most if self._room is None else min(most, self._room)

    def first(self, project_context: ProjectContext, tx: ReadTransaction, live: Iterable[Ticket]) -> tuple[Ticket, ...]:
        """Those of them that are tried together next, whole and in order."""
        waiting = standing(self._context, tx, project_context.project.id, live)
        return tickets.get_many(tx, [one.ticket for one in waiting[: self.room(project_context)]])

    def tell(self, project_context: ProjectContext, batch: Sequence[Ticket], aside: Collection[int]) -> None:
        """Write down in which order they are tried, and why. Where nobody else waits there is nothing to say."""
        with self._context.store.read() as tx:
            live = [one for one in tickets.live(tx, project=project_context.project.id) if one.id not in aside]
            waiting = {one.ticket: one for one in standing(self._context, tx, project_context.project.id, live)}
        known = [waiting[ticket.id] for ticket in batch if ticket.id in waiting]
        if not known or len(waiting) < 2:
            return
        data = {
            "tickets": [one.ticket for one in known],
            "lines": [one.lines for one in known],
            "overdue": [one.ticket for one in known if one.overdue],
            "waiting": len(waiting) - len(known),
            "most": self.room(project_context),
            "rule": Rule.SMALL_FIRST.value,
        }
        with self._context.store.write() as tx:
            tx.record(EventKind.BATCH, project=project_context.project.id, data=data)

    def learn(self, project_context: ProjectContext, tried: int, *, green: bool) -> None:
        """A batch of so many was green or red. Where that changes how many come next, it is written down."""
        reds = self._reds[project_context.project.id] = (
            0 if green else self._reds.get(project_context.project.id, 0) + 1
        )
        after = room_after(
            reds=reds, tried=tried, room=self.room(project_context), most=project_context.config.landing.batch
        )
        why = f"a batch of {tried} was green" if green else f"{reds} batches in a row were red, the last of {tried}"
        self._change(project_context, after, why, Rule.BATCH_LEARNS)

    def unlearn(self, project_context: ProjectContext, room: int) -> None:
        """What was red was flaky. That tells nothing about changes, so there is as much room as before, or more."""
        self._reds.pop(project_context.project.id, None)
        self._change(
            project_context, max(room, self.room(project_context)), "what was red was flaky", Rule.FLAKY_BLAMES_NOBODY
        )

    def forget(self, project_context: ProjectContext) -> None:
        """What was red was the target itself, which tells nothing about changes either."""
        self._reds.pop(project_context.project.id, None)
        self._change(project_context, project_context.config.landing.batch, "the target itself was red", Rule.BLAMELESS)

    def _change(self, project_context: ProjectContext, to: int, why: str, rule: Rule) -> None:
        room = self.room(project_context)
        if to == room:
            return
        with self._context.store.write() as tx:
            data = {"from": room, "to": to, "why": why, "rule": rule.value}
            tx.record(EventKind.BATCH_SIZE, project=project_context.project.id, data=data)
        self._room = to


def standing(context: Context, tx: ReadTransaction, project: int, live: Iterable[Ticket]) -> tuple[QueueEntry, ...]:
    """Those of one project's tickets that wait for landing, in order."""
    queued = [ticket for ticket in live if ticket.state is State.LANDING]
    if not queued:
        return ()
    lines = _lines(context, project, queued)
    recent = landings.history(tx, project, _LANDINGS)
    return ordered(
        QueueEntry(
            ticket=ticket.id,
            priority=ticket.spec.priority,
            since=ticket.moved_at,
            lines=lines[ticket.id],
            passed=passed_by(ticket.moved_at, recent),
        )
        for ticket in queued
    )


def _lines(context: Context, project: int, queued: Sequence[Ticket]) -> dict[int, int]:
    """How much each of them changes. A commit never changes, so git is asked once for each."""
    changes = {ticket.id: ticket.change for ticket in queued if ticket.change is not None}
    unknown = [change for change in changes.values() if change not in context.sizes]
    if unknown:
        told = context.hub(project).lines_changed((change.base, change.commit) for change in unknown)
        context.sizes |= {change: told[change.commit] for change in unknown}
    return {ticket: context.sizes[change] for ticket, change in changes.items()}
