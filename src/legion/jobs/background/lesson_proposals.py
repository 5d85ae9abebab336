"""Passes after landings: lands epics that had to wait, and proposes a lesson where a failed attempt came before.

Each landing is looked at once, also over restarts. Readers that word a lesson work one at a time, and not while a
budget is spent.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from legion.domain.agents.teams import RolePart
from legion.domain.errors import LegionError
from legion.domain.events import Event, EventKind
from legion.domain.leader.lessons import (
    EndedTicket,
    FailedAttempt,
    ProposedLesson,
    effect,
    proposal,
    question,
    read_answer,
    retires,
)
from legion.domain.notes import LONGEST_FOR_AGENTS, MOST_FOR_AGENTS
from legion.domain.tickets.ticket import Cause, State, Ticket
from legion.jobs import ask
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop
from legion.jobs.supervise.usage import refuse_without_money
from legion.jobs.trees import Trees
from legion.store import events
from legion.store.board import notes, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import runs, usage

log = logging.getLogger(__name__)

_BY_ITS_CHANGE = (Cause.CHECKS.value, Cause.REVIEW.value)
_SOURCE = "lessons"
"""The name under which the store keeps how far the events were read."""
_FIRST_LOOK = 2000
"""Events before a start of the daemon in which a landing may have had no look yet."""


class LessonProposals:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._for_reader: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None

    def look(self) -> None:
        """One look at the tickets that landed since the last one."""
        with self._context.store.read() as tx:
            last = events.last(tx)
            since = usage.read_up_to(tx, _SOURCE)[1] or max(0, last - _FIRST_LOOK)
            seen = events.after(tx, since, limit=_FIRST_LOOK)
            landed = sorted({event.ticket for event in seen if event.ticket is not None and _is_landing(event)})
            known = notes.taught(tx, landed) if landed else frozenset()
        if (now := seen[-1].n if seen else last) == since:
            return
        with self._context.store.write() as tx:
            # Before a reader is paid: a landing that a crash cuts off here has no lesson, and none is asked for twice.
            usage.have_read(tx, _SOURCE, "", now)
        for id in landed:
            if id not in known:
                try:
                    self._propose(id)
                except LegionError as trouble:
                    log.warning("no lesson of ticket %s could be proposed: %s", id, trouble)
        if landed:
            self._retire(landed)

    def _retire(self, landed: Collection[int]) -> None:
        """Close the lessons of their projects that did not help. A pinned one is the person's to close."""
        with self._context.store.write() as tx:
            for project in {one.project for one in tickets.get_many(tx, landed)}:
                known = [one for one in notes.lessons(tx, project) if not one.proposed and not one.pinned]
                ended = ended_tickets(tx, project) if known else []
                for one in known:
                    if why := retires(effect(one, notes.users(tx, one.id), ended)):
                        notes.close(tx, project, one.id, by="", outcome=why)

    def _propose(self, id: int) -> None:
        with self._context.store.read() as tx:
            ticket = tickets.get(tx, id)
            failed = [event for event in events.of_ticket(tx, id) if event.data.get("cause") in _BY_ITS_CHANGE]
        if not failed or ticket.change is None:
            return
        failures = [FailedAttempt(attempt=_attempt(one), reason=str(one.data.get("reason", ""))) for one in failed]
        differs = self._differs(ticket, failures)
        found = proposal(ticket.spec.title, failures, differs, ticket.spec.files)
        if found is None:
            return
        if self._context.user.reviewer.lessons:
            # A reader takes minutes, and housekeeping must not wait for it.
            self._for_reader.put(partial(self._read, ticket, failures, differs, found))
            if self._reader is None:
                self._reader = threading.Thread(target=self._read_all, name="lessons", daemon=True)
                self._reader.start()
        else:
            self._store(ticket, found)

    def _read_all(self) -> None:
        while True:
            try:
                self._for_reader.get()()
            except Exception as trouble:  # the next lesson has nothing to do with this one
                log.warning("a lesson could not be stored: %s", trouble)

    def _read(
        self, ticket: Ticket, failures: Sequence[FailedAttempt], differs: Collection[str], by_rule: ProposedLesson
    ) -> None:
        """Let a fork of the ticket's conversation word the lesson; where it cannot, the rule's own is proposed."""
        found: ProposedLesson | None = by_rule
        try:
            with self._context.store.read() as tx:
                mine = [run for run in runs.of_ticket(tx, ticket.id) if run.part is RolePart.BUILD]
                refuse_without_money(self._context, tx, ticket.project)
            # The worktree of a ticket that landed is removed meanwhile.
            asked = replace(ask.of_run(self._context, mine[-1]), tree=None)
            text = question(ticket.spec.title, failures, differs)
            model = self._context.user.reviewer.model
            found = read_answer(ask.ask(self._context, asked, text, model=model, role="lesson").text, failures, differs)
        except (LegionError, ValueError, OSError) as trouble:
            log.warning("the lesson of ticket %s is worded by rule: %s", ticket.id, trouble)
        if found is not None:
            self._store(ticket, found)

    def _store(self, ticket: Ticket, found: ProposedLesson) -> None:
        if len(found.text) > LONGEST_FOR_AGENTS:
            return
        with self._context.store.write() as tx:
            known = notes.for_agents(tx, ticket.project)
            if (
                notes.taught(tx, [ticket.id])
                or len(known) >= MOST_FOR_AGENTS
                or any(one.text == found.text for one in known)
            ):
                return
            notes.propose(
                tx, ticket.project, found.text, files=found.files, labels=ticket.spec.labels, ticket=ticket.id
            )

    def _differs(self, ticket: Ticket, failures: Sequence[FailedAttempt]) -> frozenset[str]:
        """The files in which the change that landed is not like the last one that failed."""
        assert ticket.change is not None, "the caller has checked it"
        with self._context.store.read() as tx:
            mine = [run for run in runs.of_ticket(tx, ticket.id) if run.part is RolePart.BUILD and run.saved]
        before = [run.saved for run in mine if run.attempt <= failures[-1].attempt]
        if not before or before[-1] is None:
            return frozenset()
        hub = self._context.project(ticket.project).hub
        own = {one.path for one in hub.changed_files(ticket.change.base, ticket.change.commit)}
        return frozenset(one.path for one in hub.changed_files(before[-1], ticket.change.commit)) & own


def ended_tickets(tx: ReadTransaction, project: int, most: int = 2000) -> list[EndedTicket]:
    """The last ones: the effect of a lesson is measured on them."""
    return [
        EndedTicket(id=one.id, files=one.spec.files, labels=one.spec.labels, attempts=one.attempt)
        for one in tickets.recent(tx, project, most)
        if one.attempt > 0
    ]


def _is_landing(event: Event) -> bool:
    return event.kind is EventKind.TICKET_MOVED and event.data.get("to") == State.DONE.value


def _attempt(event: Event) -> int:
    """The attempt that failed: the next one counts from its start on."""
    number = event.data.get("attempt")
    return number if isinstance(number, int) else 1


_EVERY = 600.0
_QUIET = 1.0


class EpicLandings(BackgroundLoop):
    def __init__(self, context: Trees, land: Callable[[], None]) -> None:
        """`land` lands those that can land now."""
        super().__init__(context, "epic-landings")
        self._land = land

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            self._attempt("the look at epics", self._land)
            self._wake.wait(_EVERY)
            self._stopping.wait(_QUIET)
