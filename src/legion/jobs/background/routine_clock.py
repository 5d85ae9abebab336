"""Starts routines: at their times, and when events happen. One thread, which sleeps until the next time or commit."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from legion.domain.errors import StateConflict
from legion.domain.projects import Project
from legion.domain.routines import FailedCount, OnEvent, Routine, Trigger, due, is_failed_attempt, reason
from legion.domain.tickets.ticket import State
from legion.git.core.errors import GitProblem
from legion.git.person.inspect import tags
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop
from legion.store import events
from legion.store.board import projects, routines, tickets
from legion.store.database.transactions import ReadTransaction

log = logging.getLogger(__name__)

_ENDED = (State.DONE, State.FAILED, State.STOPPED)
_QUIET = 1.0
_LONGEST_SLEEP = 30.0
"""Seconds: the clock may be set, and tags have no event."""
_WITHOUT_ANY = 3600.0
"""Seconds: a commit wakes it as soon as there is one."""
_MOST_EVENTS = 5000
_TAGS_EVERY = 20.0
"""Seconds between two looks at the tags of a repository."""

StartRoutine = Callable[[Routine, str], object]


class RoutineClock(BackgroundLoop):
    def __init__(self, context: Context, start: StartRoutine) -> None:
        """`start` dispatches the tickets of a routine; the second argument is why."""
        super().__init__(context, "routines")
        self._start = start
        self._read: dict[int, int] = {}
        """By routine: the last event that was read and started nothing."""
        self._tags: dict[int, tuple[float, tuple[str, ...] | None]] = {}
        """By project: when its tags were read, and which it has."""

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            self._sleep = _LONGEST_SLEEP
            self._attempt("the look at routines", self._look)
            self._wake.wait(self._sleep)
            self._stopping.wait(_QUIET)

    def _look(self) -> None:
        self._sleep = self.look()

    def look(self) -> float:
        """One look at every routine; the seconds until the next one is due. Without any it costs one query."""
        with self.context.store.read() as tx:
            standing = routines.standing(tx)
            there = {project.id: project for project in projects.all(tx)} if standing else {}
        if not standing:
            return _WITHOUT_ANY
        now = self.context.clock()
        for routine in standing:
            if routine.project in there:
                self._take(routine, there[routine.project], now)
        with self.context.store.read() as tx:
            times = [one.due_at for one in routines.standing(tx) if one.due_at is not None]
        return max(_QUIET, min([_LONGEST_SLEEP, *(moment - now for moment in times)]))

    def _take(self, routine: Routine, project: Project, now: float) -> None:
        schedule = routine.schedule
        if isinstance(schedule, OnEvent):
            moved, why = self._after_events(routine, schedule, project)
        else:
            planned = routine.due_at if routine.due_at is not None else now
            found = due(schedule, planned, now, zone())
            moved, why = replace(routine, due_at=found.at), routine.starts if found.starts else ""
        if moved == routine and not why:
            return
        try:
            with self.context.store.write() as tx:
                if why and (left := open_tickets(tx, routine)):
                    moved = replace(moved, last_result=f"skipped: ticket {left[0]} of the last start is still open")
                    why = ""
                # First the time, then the start: a daemon that is killed between the two misses one, and repeats none.
                moved = routines.save(tx, routine, moved)
            if why:
                self._start(moved, why)
        except StateConflict as changed:
            log.info("routine %s is left for the next look: %s", routine.id, changed)

    def _after_events(self, routine: Routine, schedule: OnEvent, project: Project) -> tuple[Routine, str]:
        with self.context.store.read() as tx:
            since = max(routine.seen, self._read.get(routine.id, 0))
            new = events.after(tx, since, project=routine.project, limit=_MOST_EVENTS)
            failed = {event.ticket for event in new if is_failed_attempt(event) and event.ticket is not None}
            counts = [
                FailedCount(ticket=id, failures=sum(map(is_failed_attempt, events.of_ticket(tx, id))))
                for id in (failed if schedule.trigger is Trigger.FAILED_TWICE else ())
            ]
        there = self._tags_now(project) if schedule.trigger is Trigger.TAG else None
        there = routine.tags if there is None else there
        why = reason(routine, new, counts, set(there) - set(routine.tags))
        last = new[-1].n if new else since
        if why or there != routine.tags:
            return replace(routine, seen=last, tags=there), why
        self._read[routine.id] = last
        return routine, ""

    def _tags_now(self, project: Project) -> tuple[str, ...] | None:
        at, known = self._tags.get(project.id, (-_TAGS_EVERY, None))
        if time.monotonic() - at >= _TAGS_EVERY:
            known = tags_of(project)
            self._tags[project.id] = (time.monotonic(), known)
        return known


def open_tickets(tx: ReadTransaction, routine: Routine) -> list[int]:
    """Those of its last start that have not ended: until then it does not start again."""
    states = tickets.states_of(tx, routine.last_tickets)
    return [id for id, state in sorted(states.items()) if state not in _ENDED]


def tags_of(project: Project) -> tuple[str, ...] | None:
    """The tags of the person's repository; None where it cannot be read now, which is not the same as no tags."""
    try:
        return tags(Path(project.common_dir))
    except GitProblem as trouble:
        log.warning("the tags of %s could not be read: %s", project.name, trouble)
        return None


def zone() -> tzinfo:
    """The time zone of this machine, with its changes between summer and winter."""
    name = os.environ.get("TZ", "").removeprefix(":")
    try:
        if name:
            return ZoneInfo(name)
        with Path("/etc/localtime").open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC
