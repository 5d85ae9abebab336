"""One project's merge queue: its order, and how many changes are tested together next.

It has no table of its own. The size of a change comes from git, how often a change was overtaken from the landings, how
often it lost a conflict from its events, and the size of the next batch from the last event about that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from legion.domain.checks import Receipt
from legion.domain.events import EventKind
from legion.domain.landing.queue import QueueEntry, newest_landed, ordered, overtaken, room_after
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import Cause, Fail, Park, Recheck, State, Ticket, TryAgain
from legion.jobs.attempts import escalation
from legion.jobs.board import Board
from legion.jobs.checks import approvals
from legion.jobs.checks.approvals import ApprovalConcern
from legion.jobs.landing import gate
from legion.jobs.trees import ProjectContext, Trees
from legion.store import events
from legion.store.board import landings, projects, races, tickets
from legion.store.database.transactions import ReadTransaction

_LANDINGS = 100
"""How many of the last landings are read to see which changes were overtaken."""
_EVENTS = 20_000
"""How far back an event about the batch size still counts."""


class MergeQueue:
    """For the length of one land job."""

    def __init__(self, context: Trees, project: int) -> None:
        self._context = context
        self._red_batches = context.live.queue.red_batches
        with context.store.read() as tx:
            latest = events.latest(tx, project, EventKind.BATCH_SIZE, within=_EVENTS)
        self._room = None if latest is None else int(str(latest.data["to"]))

    def room(self, project: ProjectContext) -> int:
        """How many changes the next batch may hold."""
        most = project.config.landing.most_together
        return most if self._room is None else min(most, self._room)

    def first(self, project: ProjectContext, tx: ReadTransaction, live: Iterable[Ticket]) -> tuple[Ticket, ...]:
        """Those of the tickets that are tested together next, in order. Those at the person's gate are left out."""
        free = [one for one in live if one.state is State.LANDING and not gate.waits(tx, project, one)]
        waiting = waiting_entries(self._context, tx, project.id, free)
        return tickets.get_many(tx, [one.ticket for one in waiting[: self.room(project)]])

    def at_gate(self, project: ProjectContext, tx: ReadTransaction, live: Iterable[Ticket]) -> Ticket | None:
        """The first ticket that has to wait for the person once it is tested."""
        gated = [one for one in live if one.state is State.LANDING and gate.waits(tx, project, one)]
        waiting = waiting_entries(self._context, tx, project.id, gated)
        return tickets.get(tx, waiting[0].ticket) if waiting else None

    def record_batch(self, project: ProjectContext, batch: Sequence[Ticket], aside: Collection[int]) -> None:
        """Record the order of a batch and its reason, unless nothing else waits."""
        with self._context.store.read() as tx:
            live = [one for one in tickets.live(tx, project=project.id) if one.id not in aside]
            waiting = {one.ticket: one for one in waiting_entries(self._context, tx, project.id, live)}
        known = [waiting[ticket.id] for ticket in batch if ticket.id in waiting]
        if not known or len(waiting) < 2:
            return
        data = {
            "tickets": [one.ticket for one in known],
            "lines": [one.lines for one in known],
            "overdue": [one.ticket for one in known if one.overdue],
            "waiting": len(waiting) - len(known),
            "most": self.room(project),
            "rule": Rule.SMALL_FIRST.value,
        }
        with self._context.store.write() as tx:
            tx.record(EventKind.BATCH, project=project.id, data=data)

    def learn(self, project: ProjectContext, tried: int, *, green: bool) -> None:
        """Adapt the size of the next batch to the result of one of `tried` changes. A change of the size is
        recorded.
        """
        reds = 0 if green else (self._red_batches.get(project.id) or 0) + 1
        self._red_batches.update({project.id: reds})
        after = room_after(reds=reds, tried=tried, room=self.room(project), most=project.config.landing.most_together)
        why = f"a batch of {tried} was green" if green else f"{reds} batches in a row were red, the last of {tried}"
        self._change(project, after, why, Rule.BATCH_LEARNS)

    def unlearn(self, project: ProjectContext, room: int) -> None:
        """The red result was flaky and says nothing about changes, so the next batch may be as big as before."""
        self._red_batches.remove([project.id])
        self._change(project, max(room, self.room(project)), "the red result was flaky", Rule.FLAKY_BLAMES_NONE)

    def forget(self, project: ProjectContext) -> None:
        """The target itself was red, which says nothing about changes either."""
        self._red_batches.remove([project.id])
        self._change(project, project.config.landing.most_together, "the target itself was red", Rule.BLAMELESS)

    def _change(self, project: ProjectContext, to: int, why: str, rule: Rule) -> None:
        room = self.room(project)
        if to == room:
            return
        with self._context.store.write() as tx:
            data = {"from": room, "to": to, "why": why, "rule": rule.value}
            tx.record(EventKind.BATCH_SIZE, project=project.id, data=data)
        self._room = to


def waiting_entries(
    context: Trees, tx: ReadTransaction, project: int, live: Iterable[Ticket]
) -> tuple[QueueEntry, ...]:
    """The tickets of one project that wait for landing, in order."""
    racing = {lane.ticket for lanes in races.undecided(tx).values() for lane in lanes}
    queued = [ticket for ticket in live if ticket.state is State.LANDING and ticket.id not in racing]
    if not queued:
        return ()
    lines = lines_changed(context, project, queued)
    newest = newest_landed(landings.history(tx, project, _LANDINGS))
    return ordered(
        QueueEntry(
            ticket=ticket.id,
            priority=ticket.spec.priority,
            place=ticket.place,
            since=ticket.moved_at,
            lines=lines[ticket.id],
            overtaken=overtaken(ticket.moved_at, newest),
            lost=escalation.causes(tx, ticket).count(Cause.CONFLICT),
        )
        for ticket in queued
    )


def lines_changed(context: Trees, project: int, queued: Sequence[Ticket]) -> dict[int, int]:
    """How many lines each of them changes."""
    changes = {ticket.id: ticket.change for ticket in queued if ticket.change is not None}
    known = dict(context.live.queue.change_sizes.current)
    unknown = [change for change in changes.values() if change not in known]
    if unknown:
        counted = context.hub(project).lines_changed((change.base, change.commit) for change in unknown)
        new = {change: counted[change.commit] for change in unknown}
        context.live.queue.change_sizes.update(new)
        known |= new
    return {ticket: known[change] for ticket, change in changes.items()}


def send_back(
    context: Board,
    ticket: Ticket,
    step: TryAgain | Fail | Park | Recheck,
    kind: EventKind = EventKind.SENT_BACK,
    because: Sequence[Receipt] = (),
) -> None:
    """Take the step, unless a person has moved the ticket meanwhile."""
    with context.store.write() as tx:
        if tickets.get(tx, ticket.id).version != ticket.version:
            return
        why, rule = escalation.apply_step(context, tx, ticket, step)
        data = {"why": why, "receipts": [receipt.id for receipt in because], "rule": rule.value}
        tx.record(kind, project=ticket.project, ticket=ticket.id, data=data)


def stop_for_approval(context: Board, ticket: Ticket, about: ApprovalConcern) -> bool:
    """Ask a person before the change lands, or send it back after a no. False where they have said yes."""
    with context.store.write() as tx:
        if tickets.get(tx, ticket.id).version != ticket.version:
            return True
        step = approvals.settle(tx, ticket, about, context.user.questions.answer_within)
        if step is None:
            return False
        why, rule = escalation.apply_step(context, tx, ticket, step)
        data = {"why": why, "receipts": [], "rule": rule.value}
        tx.record(EventKind.SENT_BACK, project=ticket.project, ticket=ticket.id, data=data)
    return True


def refuse_upstream(
    context: Board, project: ProjectContext, why: str, remedy: str, because: Sequence[Receipt] = ()
) -> None:
    """The person's commits do not enter the target before they commit again."""
    with context.store.write() as tx:
        record = projects.get(tx, project.id)
        refused = replace(record, person_refused=project.record.person_tip)
        proof = {"receipts": [receipt.id for receipt in because]} if because else {}
        data = {"tip": project.record.person_tip, "why": why, "remedy": remedy, **proof}
        projects.save(tx, refused, EventKind.NOT_ABSORBED, data)


def settle_upstream(context: Board, project: ProjectContext, tip: str) -> None:
    """The target holds the person's commits already, and more that landed meanwhile: nothing is left to absorb."""
    with context.store.write() as tx:
        record = projects.get(tx, project.id)
        if record.person_tip == tip:
            projects.save(tx, replace(record, person_absorbed=tip), EventKind.PERSON_SEEN, {"tip": tip})
