"""Keeps the right jobs running: loads a snapshot, asks `decide`, claims and starts what it says.

One thread decides; each job has a thread of its own. A job that breaks rests for a while and is started again, so
that a full disk or a bug costs time and never a ticket.
"""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from legion.config.files.project import parse
from legion.domain.errors import LegionError, StateConflict
from legion.domain.events import EventKind
from legion.domain.rules import Rule
from legion.domain.scheduling.admission import AdmissionState, HoldReason, StartCandidate
from legion.domain.scheduling.claims import Claim
from legion.domain.scheduling.decide import Command, HandBack, JobKind, StartJob, Wake, decide
from legion.domain.scheduling.throttle import ThrottleState
from legion.domain.tickets.ticket import Inspect, Start, State, Unpark
from legion.jobs.checks.job import check
from legion.jobs.context import Backoff, Context
from legion.jobs.landing.baseline import baseline
from legion.jobs.landing.job import land
from legion.jobs.review import job as reviewing
from legion.jobs.review.job import review
from legion.jobs.run import advisors
from legion.jobs.run.job import run
from legion.jobs.scheduling import throttle
from legion.jobs.supervise import questions
from legion.jobs.turn.claimed_tickets import hand_back
from legion.jobs.turn.job import begin, serve
from legion.store import snapshot
from legion.store.board import projects, tickets
from legion.store.database.transactions import Transaction
from legion.store.staff import agents
from legion.store.work import claims
from legion.system import crash
from legion.system.crash import Point

log = logging.getLogger(__name__)

JOBS: Mapping[JobKind, Callable[[Context, Claim], None]] = {
    JobKind.RUN: run,
    JobKind.CHECK: check,
    JobKind.REVIEW: review,
    JobKind.LAND: land,
    JobKind.BASELINE: baseline,
    JobKind.SERVE: serve,
}

_OF_TICKETS = (JobKind.RUN, JobKind.CHECK, JobKind.REVIEW)
_FIRST_REST, _LONGEST_REST = 1.0, 300.0
_LONGEST_REST_WITHOUT_ROOM = 10.0
_NO_ROOM = 1 << 20
_LOOK_AGAIN = 2.0
_LONGEST_WORDS = 500
_BREATH, _LONGEST_BREATH = 4, 0.05
"""Deciding takes at most a fifth of a processor: what happens in quick succession is decided on together."""


class Scheduler:
    def __init__(self, context: Context) -> None:
        self.context = context
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._left_over: list[Claim] = []
        self._stances: dict[str, ThrottleState] = {}
        self._purser = throttle.BudgetAsker(context)
        self._loop = threading.Thread(target=self._conduct, name="conductor", daemon=True)

    def start(self) -> None:
        """Claims of a daemon before us are void: its jobs ended with it. What they left undone is decided anew."""
        with self.context.store.write() as tx:
            for claim in claims.active(tx):
                claims.finish(tx, claim)
        self.context.store.on_commit(self.poke)
        self.poke()
        self._loop.start()

    def poke(self) -> None:
        """Something happened that may change what should be running."""
        self._wake.set()

    def stop(self) -> None:
        """Decide nothing more. Jobs are left where they are: agents go on, and the next daemon adopts them."""
        self._stopping.set()
        self._wake.set()
        if self._loop.ident is not None:
            self._loop.join()

    def _conduct(self) -> None:
        wake_at: float | None = None
        rested_at = 0.0
        while not self._stopping.is_set():
            timeout = None if wake_at is None else max(0.0, wake_at - self.context.clock())
            self._wake.wait(timeout)
            if self._stopping.wait(max(0.0, rested_at - time.monotonic())):
                return
            self._wake.clear()
            began = time.monotonic()
            try:
                questions.settle_overdue(self.context)
                times = (self.decide_once(), questions.next_deadline(self.context))
                wake_at = min((moment for moment in times if moment is not None), default=None)
            except Exception as trouble:  # whatever it is, a daemon that decides nothing more would be worse
                known = isinstance(trouble, LegionError)
                log.error("deciding failed, next try in %s s: %s", _FIRST_REST, trouble, exc_info=not known)
                wake_at = self.context.clock() + _FIRST_REST
            ended = time.monotonic()
            rested_at = ended + min(_BREATH * (ended - began), _LONGEST_BREATH)

    def decide_once(self) -> float | None:
        """One round: returns when to look again even if nothing happens."""
        now = self.context.clock()
        self._give_back_left_over()
        with self.context.store.read() as tx:
            configs = {project.id: parse(project.config_text, origin=project.name) for project in projects.all(tx)}
            parallel = {project: config.agents.parallel for project, config in configs.items()}
            facts = snapshot.load(tx, slots=self.context.user.daemon.slots, parallel=parallel)
            pace = throttle.rhythm(self.context, tx, facts.tickets, configs)
        views = tuple(replace(view, overlap=configs[view.id].conflicts.overlap) for view in facts.projects)
        resting = {job: rest.until for job, rest in self.context.rests.items()}
        decision = decide(replace(facts, projects=views, resting=resting, rhythm=pace), now)
        self._note_pace(pace, decision.held)
        self._purser.ask(decision.held)
        for command in decision.commands:
            self._apply(command)
        if decision.held:
            # What holds them may be a setting, and nobody tells that a person changed it.
            return min(now + _LOOK_AGAIN, decision.wake_at or math.inf)
        return decision.wake_at

    def _note_pace(self, pace: AdmissionState, held: Mapping[StartCandidate, HoldReason]) -> None:
        """The board says why somebody does not begin; that an account's stance changed is an event."""
        self.context.held = held
        for account, reading in pace.readings.items():
            before = self._stances.get(account, ThrottleState.OPEN)
            if reading.stance is before:
                continue
            self._stances[account] = reading.stance
            data = {
                "provider": account,
                "from": before.value,
                "to": reading.stance.value,
                "until": reading.until,
                "why": reading.why,
                "rule": Rule.GOVERNOR.value,
            }
            with self.context.store.write() as tx:
                tx.record(EventKind.PACE, data=data)

    def _apply(self, command: Command) -> None:
        """Somebody else may have changed the ticket since the snapshot: then this command is moot."""
        try:
            crash.reach(Point.CONDUCT_BEFORE_CLAIM)
            with self.context.store.write() as tx:
                claim = self._commit(tx, command)
            crash.reach(Point.CONDUCT_AFTER_CLAIM)
        except StateConflict as moot:
            log.debug("not applied: %s", moot.message)
            return
        if claim is not None:
            thread = threading.Thread(target=self._work, args=(claim,), name=f"{claim.kind.value}-{claim.subject}")
            thread.daemon = True
            self._left_over.append(claim)
            thread.start()
            self._left_over.remove(claim)

    def _commit(self, tx: Transaction, command: Command) -> Claim | None:
        match command:
            case Wake(ticket, version):
                tickets.move(tx, ticket, Unpark(), expected_version=version)
                return None
            case HandBack(ticket, version):
                hand_back(tx, ticket, version)
                return None
            case StartJob(kind, subject, version):
                if version is not None:
                    self._begin(tx, kind, subject, version)
                if kind is JobKind.SERVE:
                    begin(tx, subject)
                elif kind is JobKind.REVIEW:
                    reviewing.begin(tx, subject)
                return claims.claim(tx, kind, subject, self.context.machine)

    def _begin(self, tx: Transaction, kind: JobKind, ticket_id: int, version: int) -> None:
        """A queued ticket begins; one that is in hand already only gets its job back."""
        ticket = tickets.get(tx, ticket_id)
        if ticket.version != version:
            raise StateConflict(f"Ticket {ticket_id} changed meanwhile.")
        if ticket.state is not State.QUEUED:
            return
        if kind is JobKind.RUN:
            project = projects.get(tx, ticket.project)
            advisors.start(tx, tickets.move(tx, ticket_id, Start(project.target), expected_version=version))
        else:
            tickets.move(tx, ticket_id, Inspect(), expected_version=version)

    def _work(self, claim: Claim) -> None:
        job = (claim.kind, claim.subject)
        try:
            JOBS[claim.kind](self.context, claim)
            self.context.rests.pop(job, None)
        except Exception as trouble:  # a job may break in any way; the ticket must not be lost with it
            self._rest(claim, trouble)
        self.poke()

    def _rest(self, claim: Claim, trouble: Exception) -> None:
        job = (claim.kind, claim.subject)
        full = self._full_disk()
        before, longest = self.context.rests.get(job), _LONGEST_REST_WITHOUT_ROOM if full else _LONGEST_REST
        length = min(before.length * 2, longest) if before else _FIRST_REST
        known = isinstance(trouble, LegionError)
        why = full or " ".join((str(trouble) if known else f"{type(trouble).__name__}: {trouble}").split())
        self.context.rests[job] = Backoff(length=length, until=self.context.clock() + length, why=why[:_LONGEST_WORDS])
        log.error(
            "the %s job of %s is tried again in %g s: %s",
            claim.kind.value,
            claim.subject,
            length,
            why,
            exc_info=None if known or full else trouble,
        )
        data = {
            "job": claim.kind.value,
            "subject": claim.subject,
            "why": why,
            "rests": length,
            "rule": Rule.BROKEN_IS_NOT_RED.value,
        }
        try:
            with self.context.store.write() as tx:
                claims.finish(tx, claim)
                ticket = claim.subject if claim.kind in _OF_TICKETS else None
                tx.record(EventKind.WARNING, project=_project(tx, claim), ticket=ticket, data=data)
        except LegionError as worse:
            log.error("the claim of the broken job is given back later: %s", worse.message)
            self._left_over.append(claim)

    def _full_disk(self) -> str | None:
        """Programs say in many ways that there is no room; this says it plainly."""
        try:
            with self.context.store.read() as tx:
                places = [self.context.data.root, *(Path(project.worktrees) for project in projects.all(tx))]
            full = [place for place in places if place.exists() and shutil.disk_usage(place).free < _NO_ROOM]
        except (LegionError, OSError):
            return None
        return f"the disk that holds {full[0]} is full; free some room and it goes on by itself" if full else None

    def _give_back_left_over(self) -> None:
        """Claims of broken jobs that could not be given back at the time, for want of a working store or a thread."""
        while self._left_over:
            with self.context.store.write() as tx:
                # The answer to the first try may be all that was lost.
                if claims.still_mine(tx, self._left_over[-1]):
                    claims.finish(tx, self._left_over[-1])
            self._left_over.pop()


def _project(tx: Transaction, claim: Claim) -> int:
    """Whose board the job is about."""
    if claim.kind in _OF_TICKETS:
        return tickets.get(tx, claim.subject).project
    return agents.numbered(tx, claim.subject).project if claim.kind is JobKind.SERVE else claim.subject
