"""Keeps the right jobs running: loads a snapshot, asks `decide`, then claims and starts the jobs that it returns.

One thread decides; each job has a thread of its own. A job that raises an error backs off and is started again, so a
full disk or a bug costs time and never a ticket.
"""

from __future__ import annotations

import logging
import math
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from legion.config.files.project import ProjectConfig
from legion.domain.errors import BadInput, LegionError, StateConflict
from legion.domain.events import EventKind
from legion.domain.landing.conflicts import claims_of, may_be_brought
from legion.domain.projects import Project
from legion.domain.rules import Rule
from legion.domain.scheduling.admission import AdmissionState
from legion.domain.scheduling.decide import BoardSnapshot, Claim, JobKind, decide
from legion.domain.scheduling.job_places import FOLLOWS_RUN, Command, HandBack, ParkTicket, StartJob, Wake
from legion.domain.scheduling.throttle import ThrottleState
from legion.domain.tickets.ticket import Inspect, Park, ParkReason, Recheck, Start, State, Ticket, Unpark
from legion.jobs.checks.job import check
from legion.jobs.context import Context
from legion.jobs.landing.conflict_prediction import Guesses
from legion.jobs.landing.gate import baseline
from legion.jobs.landing.job import land
from legion.jobs.live_state import Backoff
from legion.jobs.machine_runs import placements
from legion.jobs.plan import job as planning
from legion.jobs.plan.job import plan
from legion.jobs.review import job as reviewing
from legion.jobs.review.job import review
from legion.jobs.run import advisors
from legion.jobs.run.job import run
from legion.jobs.scheduling import throttle
from legion.jobs.supervise import questions
from legion.jobs.trees import settings_of
from legion.jobs.turn.claimed_tickets import hand_back
from legion.jobs.turn.job import begin, serve
from legion.store import events, snapshot
from legion.store.board import goals, projects, tickets
from legion.store.database.transactions import Store, Transaction
from legion.store.staff import agents
from legion.store.work import claims, takeovers
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
    JobKind.PLAN: plan,
}

_TICKET_JOBS = (JobKind.RUN, JobKind.CHECK, JobKind.REVIEW)
_FIRST_BACKOFF, _LONGEST_BACKOFF = 1.0, 300.0
_LONGEST_BACKOFF_ON_FULL_DISK = _LONGEST_BACKOFF_OF_DECISIONS = 10.0
_FULL_DISK = 1 << 20
"""Fewer free bytes than this."""
_RECHECK_SETTINGS = 2.0
_AT_ONCE = 5
"""Commands that are applied in one transaction: each commit waits for the disk, and the first job for all of them."""
_FIRST_START = 0.1
"""Seconds for which the commands after the first few wait for the first run to start."""
_LONGEST_REASON = 500
_PAUSE, _LONGEST_PAUSE = 4, 0.05
"""Deciding takes at most a fifth of a processor: events in quick succession are decided on together."""
_LONGEST_SLEEP = 60.0
"""Seconds after which the clock is read again: it may have been set, or the machine may have been asleep."""


class UnreleasedClaims:
    """Claims of jobs that have ended and could not release them, because the store or the thread failed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claims: queue.SimpleQueue[Claim] = queue.SimpleQueue()

    def add(self, claim: Claim) -> None:
        self._claims.put(claim)

    def release_all(self) -> None:
        """Each claim is taken out before its write and put back if that fails: other threads add some meanwhile."""
        for _ in range(self._claims.qsize()):
            claim = self._claims.get()
            try:
                with self._store.write() as tx:
                    # An earlier try may have been committed although it raised.
                    if claims.still_mine(tx, claim):
                        claims.finish(tx, claim)
            except BaseException:
                self._claims.put(claim)
                raise


class Scheduler:
    def __init__(self, context: Context, *, longest_sleep: float = _LONGEST_SLEEP) -> None:
        self.context = context
        self._longest_sleep = longest_sleep
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._state = context.live.scheduler
        self._unreleased = UnreleasedClaims(context.store)
        self._throttles: dict[str, ThrottleState] = {}
        """By account: the state that was recorded last."""
        self._budget_asker = throttle.BudgetAsker(context)
        self._guesses = Guesses(context)
        self._behind: Mapping[int, int] = {}
        self._waited: set[int] = set()
        """Tickets that waited for another with the same claims."""
        self._loop = threading.Thread(target=self._keep_deciding, name="scheduler", daemon=True)

    def start(self) -> None:
        """Void the claims of an earlier daemon: its jobs ended with it. Their work is decided on again."""
        with self.context.store.write() as tx:
            for claim in claims.active(tx):
                claims.finish(tx, claim)
        self.context.store.on_commit(self.poke)
        self.poke()
        self._loop.start()

    def poke(self) -> None:
        """Decide again soon: an event may have changed what should be running."""
        self._wake.set()

    def stop(self) -> None:
        """Stop deciding. Jobs stay where they are: agents keep working, and the next daemon adopts them."""
        self._stopping.set()
        self._wake.set()
        if self._loop.ident is not None:
            self._loop.join()

    def _keep_deciding(self) -> None:
        wake_at: float | None = None
        not_before = 0.0
        while not self._stopping.is_set():
            timeout = None if wake_at is None else min(max(0.0, wake_at - self.context.clock()), self._longest_sleep)
            self._wake.wait(timeout)
            if self._stopping.wait(max(0.0, not_before - time.monotonic())):
                return
            self._wake.clear()
            began = time.monotonic()
            wake_at = self.try_to_decide()
            ended = time.monotonic()
            not_before = ended + min(_PAUSE * (ended - began), _LONGEST_PAUSE)

    def try_to_decide(self) -> float | None:
        """One decision, or a backoff where it fails. Returns when to decide again even if nothing happens."""
        try:
            questions.settle_overdue(self.context)
            times = (self.decide_once(), questions.next_deadline(self.context))
        except Exception as trouble:  # a daemon that no longer decides would be worse than any error
            return self._put_off(trouble)
        self._state.undecided.replace({})
        return min((moment for moment in times if moment is not None), default=None)

    def _put_off(self, trouble: Exception) -> float:
        known = isinstance(trouble, LegionError)
        why = _in_one_line(trouble)
        before = self._state.undecided.get(why)
        length = min(before.length * 2, _LONGEST_BACKOFF_OF_DECISIONS) if before else _FIRST_BACKOFF
        log.error("scheduler: decision failed, retry in %g s: %s", length, why, exc_info=None if known else trouble)
        until = self.context.clock() + length
        self._state.undecided.replace({why: Backoff(length=length, until=until, why=why[:_LONGEST_REASON])})
        return until

    def decide_once(self) -> float | None:
        """One decision, applied. Returns when to decide again even if nothing happens."""
        now = self.context.clock()
        self._unreleased.release_all()
        snapshot = self._snapshot()
        decision = decide(snapshot, now)
        self._state.holds.replace(decision.held)
        self._behind = decision.behind
        ordered = (Rule.OVERLAP_WAITS,)
        self._waited |= {one for one, hold in decision.held.items() if hold.rule in ordered and isinstance(one, int)}
        self._record_throttles(snapshot.admission)
        self._budget_asker.ask(decision.held)
        started = self.context.start_limit.count
        for first in range(0, len(decision.commands), _AT_ONCE):
            if first == _AT_ONCE and any(map(self._starts_here, decision.commands[:first])):
                # Claiming the rest takes as long as preparing a run, and delays the first agent by as much.
                self.context.start_limit.wait_for_start(started, _FIRST_START)
            self._apply(decision.commands[first : first + _AT_ONCE])
        if decision.held:
            # The reason may be a setting, and a change of the settings file sends no event.
            return min(now + _RECHECK_SETTINGS, decision.wake_at or math.inf)
        return decision.wake_at

    def _starts_here(self, command: Command) -> bool:
        here = ("", self.context.machine)
        return isinstance(command, StartJob) and command.kind is JobKind.RUN and command.place in here

    def _snapshot(self) -> BoardSnapshot:
        with self.context.store.read() as tx:
            configs = self._configs(projects.all(tx))
            parallel = {project: config.agents.parallel for project, config in configs.items()}
            facts = snapshot.load(tx, slots=self.context.user.daemon.room, parallel=parallel)
            admission = throttle.admission_state(self.context, tx, facts.tickets, configs)
            now = self.context.clock()
            taking = {job: at for job, at in facts.at.items() if facts.takes_slot(*job)}
            found = placements.places(self.context, tx, taking, now)
            labels = throttle.role_labels(tx, facts.tickets)
            texts = self._guesses.read(tx, facts.tickets, configs)
        guesses = self._guesses.of(texts)
        self.context.live.guesses.replace(guesses)
        views = tuple(
            replace(view, overlap=configs[view.id].conflicts.overlap)
            if view.id in configs
            else replace(view, readable=False)
            for view in facts.projects
        )
        backoffs = {job: backoff.ends_at(now) for job, backoff in self._state.backoffs.current.items()}
        return replace(
            facts,
            projects=views,
            guesses=guesses,
            brought={id: other for id, (other, green) in self.context.live.tried.current.items() if green},
            resting=backoffs,
            admission=admission,
            places=found,
            travels=throttle.travels(self.context) if len(found) > 1 else throttle.TRAVELS,
            staying=throttle.staying(self.context, configs) if len(found) > 1 else frozenset(),
            labels=labels,
            open_at={job: at or self.context.machine for job, at in facts.open_at.items()},
        )

    def _configs(self, all_projects: Iterable[Project]) -> dict[int, ProjectConfig]:
        """Parsed one by one: a legion.toml that this release cannot read holds its own project and no other."""
        configs: dict[int, ProjectConfig] = {}
        unreadable: dict[int, str] = {}
        for project in all_projects:
            try:
                configs[project.id] = settings_of(project)
            except BadInput as wrong:
                unreadable[project.id] = wrong.message
                if project.id not in self._state.unreadable.current:
                    log.error("project %s is held, its legion.toml cannot be read: %s", project.name, wrong.message)
        self._state.unreadable.replace(unreadable)
        return configs

    def _record_throttles(self, admission: AdmissionState) -> None:
        """Record an event for each account whose throttle changed."""
        for account, throttle_ in admission.throttles.items():
            before = self._throttles.get(account, ThrottleState.OPEN)
            if throttle_.stance is before:
                continue
            data = {
                "provider": account,
                "from": before.value,
                "to": throttle_.stance.value,
                "until": throttle_.until,
                "why": throttle_.why,
                "rule": Rule.GOVERNOR.value,
            }
            with self.context.store.write() as tx:
                tx.record(EventKind.THROTTLE_CHANGED, data=data)
            # After the write: if it fails, the next decision records the change.
            self._throttles[account] = throttle_.stance

    def _apply(self, commands: Sequence[Command]) -> None:
        """Apply them together, or one by one where a ticket has changed since the snapshot: that one is left out."""
        try:
            crash.reach(Point.CONDUCT_BEFORE_CLAIM)
            with self.context.store.write() as tx:
                made = [self._commit(tx, command) for command in commands]
            crash.reach(Point.CONDUCT_AFTER_CLAIM)
        except StateConflict as outdated:
            if len(commands) == 1:
                log.debug("not applied: %s", outdated.message)
                return
            for command in commands:
                self._apply((command,))
            return
        self._start([claim for claim in made if claim is not None])

    def _start(self, made: Sequence[Claim]) -> None:
        """Start a thread for each claimed job."""
        for position, claim in enumerate(made):
            name = f"{claim.kind.value}-{claim.subject}"
            try:
                threading.Thread(target=self.run_job, args=(claim,), name=name, daemon=True).start()
            except BaseException:
                for left in made[position:]:
                    self._unreleased.add(left)
                raise

    def _commit(self, tx: Transaction, command: Command) -> Claim | None:
        match command:
            case Wake(ticket, version):
                tickets.move(tx, ticket, Unpark(), expected_version=version)
                return None
            case ParkTicket(ticket, version, why):
                tickets.move(tx, ticket, Park(ParkReason.NO_MACHINE, why), expected_version=version)
                return None
            case HandBack(ticket, version):
                hand_back(tx, ticket, version)
                return None
            case StartJob(kind, subject, version, place, why):
                machine = "" if place == self.context.machine else place
                if kind is JobKind.RUN and self._is_stale(tx, subject):
                    tickets.move(tx, subject, Recheck(), expected_version=version)
                    return None
                if kind is JobKind.RUN and self._may_be_brought(tx, subject):
                    return claims.claim(tx, JobKind.CHECK, subject, self.context.machine)
                if version is not None:
                    self._begin(tx, kind, subject, version, machine)
                if kind is JobKind.SERVE:
                    begin(tx, subject)
                elif kind is JobKind.REVIEW:
                    reviewing.begin(tx, subject, machine)
                elif kind is JobKind.PLAN:
                    planning.begin(tx, subject, machine)
                where = place or self.context.machine
                if why == FOLLOWS_RUN:
                    before = claims.latest(tx, kind, subject)
                    why = before.why if before is not None and before.machine == where and before.why else why
                return claims.claim(tx, kind, subject, where, why=why)

    def _is_stale(self, tx: Transaction, ticket_id: int) -> bool:
        """Whether the target moved while the ticket waited after a conflict: its change may fit now, or be there."""
        ticket = tickets.get(tx, ticket_id)
        if ticket.state is not State.QUEUED or ticket.change is None or ticket.interrupted:
            return False
        return ticket.lost and ticket.base != projects.get(tx, ticket.project).target

    def _may_be_brought(self, tx: Transaction, ticket_id: int) -> bool:
        """Whether its proofs are tried before its agent starts; once a start point, so that it starts at last."""
        ticket, behind, tried = tickets.get(tx, ticket_id), self._behind.get(ticket_id, 0), self.context.live.tried
        known = (tried.get(ticket_id) or (None, False))[0] == behind
        if known or ticket.state is not State.QUEUED or takeovers.of_ticket(tx, ticket_id) is not None:
            return False
        since = events.since(tx, ticket.project, EventKind.LANDED, ticket.created_at) if ticket.spec.proofs else ()
        there = tickets.get_many(tx, {one.ticket for one in since if one.ticket is not None} | {behind} - {0})
        mine = claims_of(ticket, self.context.live.guesses.current)
        if not may_be_brought(ticket, mine, there, waited=ticket_id in self._waited):
            return False
        tried.update({ticket_id: (behind, False)})
        return True

    def _begin(self, tx: Transaction, kind: JobKind, ticket_id: int, version: int, machine: str) -> None:
        """Start a queued ticket. One that has started only gets its job back."""
        ticket = tickets.get(tx, ticket_id)
        if ticket.version != version:
            raise StateConflict(f"Ticket {ticket_id} changed meanwhile.")
        if ticket.state is not State.QUEUED:
            return
        if kind is JobKind.RUN:
            project = projects.get(tx, ticket.project)
            started = tickets.move(tx, ticket_id, self._start_of(tx, ticket, project.target), expected_version=version)
            advisors.start(tx, started, machine)
        else:
            tickets.move(tx, ticket_id, Inspect(), expected_version=version)

    def _start_of(self, tx: Transaction, ticket: Ticket, target: str) -> Start:
        """On the target, or on the change that this one waits for no longer."""
        behind = self._behind.get(ticket.id)
        other = tickets.get(tx, behind) if behind is not None else None
        if other is None or other.change is None or other.ended:
            return Start(target)
        return Start(other.change.commit, behind=other.id)

    def run_job(self, claim: Claim) -> None:
        """Run a claimed job to its end in this thread. An error releases the claim and sets a backoff."""
        try:
            JOBS[claim.kind](self.context, claim)
            self._state.backoffs.remove([(claim.kind, claim.subject)])
        except Exception as trouble:  # any error may come out of a job, and its ticket must not be lost with it
            self._back_off(claim, trouble)
        finally:
            self.poke()

    def _back_off(self, claim: Claim, trouble: Exception) -> None:
        full = self._full_disk()
        known = isinstance(trouble, LegionError)
        why = full or _in_one_line(trouble)
        length = self._next_backoff(claim, _LONGEST_BACKOFF_ON_FULL_DISK if full else _LONGEST_BACKOFF)
        until = self.context.clock() + length
        job = (claim.kind, claim.subject)
        self._state.backoffs.update({job: Backoff(length=length, until=until, why=why[:_LONGEST_REASON])})
        name = f"{claim.kind.value} {claim.subject}"
        log.error("job %s failed, retry in %g s: %s", name, length, why, exc_info=None if known or full else trouble)
        try:
            self._record_failure(claim, why, length)
        except Exception as worse:  # whatever is wrong with the store, the claim must be released at last
            log.error("job %s: its claim is released later: %s", name, worse)
            self._unreleased.add(claim)

    def _next_backoff(self, claim: Claim, longest: float) -> float:
        before = self._state.backoffs.get((claim.kind, claim.subject))
        return min(before.length * 2, longest) if before else _FIRST_BACKOFF

    def _record_failure(self, claim: Claim, why: str, length: float) -> None:
        data = {
            "job": claim.kind.value,
            "subject": claim.subject,
            "why": why,
            "rests": length,
            "rule": Rule.BROKEN_IS_NOT_RED.value,
        }
        with self.context.store.write() as tx:
            claims.finish(tx, claim)
            ticket = claim.subject if claim.kind in _TICKET_JOBS else None
            tx.record(EventKind.WARNING, project=_project_of(tx, claim), ticket=ticket, data=data)

    def _full_disk(self) -> str | None:
        """A sentence about a full disk, which programs report in many ways; None where there is room."""
        try:
            with self.context.store.read() as tx:
                places = [self.context.data.root, *(Path(project.worktrees) for project in projects.all(tx))]
            full = [place for place in places if place.exists() and shutil.disk_usage(place).free < _FULL_DISK]
        except Exception as unknown:  # a store that cannot be read is reported when the claim is released
            log.debug("free space is unknown: %s", unknown)
            return None
        return f"the disk that holds {full[0]} is full; free some space and the job resumes by itself" if full else None


def _in_one_line(trouble: Exception) -> str:
    """For people. The kind of an error that is not ours says more than its text alone."""
    text = str(trouble) if isinstance(trouble, LegionError) else f"{type(trouble).__name__}: {trouble}"
    return " ".join(text.split())


def _project_of(tx: Transaction, claim: Claim) -> int:
    if claim.kind in _TICKET_JOBS:
        return tickets.get(tx, claim.subject).project
    if claim.kind is JobKind.PLAN:
        return goals.get(tx, claim.subject).project
    return agents.numbered(tx, claim.subject).project if claim.kind is JobKind.SERVE else claim.subject
