"""The land job: works through one project's merge queue, batch by batch, until it is empty.

A change that a failed test blames is tested again alone before it goes back to its agent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from legion.domain.agents.teams import REVIEWER
from legion.domain.checks import failed_commands
from legion.domain.events import EventKind
from legion.domain.failure_causes import likely_cause
from legion.domain.review.verdicts import Severity
from legion.domain.rules import Rule
from legion.domain.scheduling.decide import Claim
from legion.domain.scheduling.races import (
    COMPARES,
    FinishedLane,
    LaneStanding,
    RaceResult,
    combination,
    decide,
    is_open,
)
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import AskReview, Park, ParkReason, State, Stop, Ticket
from legion.git.merge.candidates import MergeConflict
from legion.jobs.board import Board
from legion.jobs.checks import candidates, trial
from legion.jobs.checks.candidates import candidate, sent_back_for_conflict
from legion.jobs.checks.execution import CheckedCommit
from legion.jobs.checks.job import confirmed, sent_back_for_red
from legion.jobs.checks.ticket_watch import cancelling
from legion.jobs.context import Context
from legion.jobs.landing import gate, speculation, target
from legion.jobs.landing.batch import Batch
from legion.jobs.landing.queue import MergeQueue, lines_changed, send_back
from legion.jobs.landing.speculation import Speculation
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace.command import Cancelled, CancelToken
from legion.store import events
from legion.store.board import projects, races, tickets, verdicts
from legion.store.board.races import Lane
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import claims
from legion.system import crash
from legion.system.crash import Point

_QUIET, _LONGEST_WAIT = 0.1, 1.0
"""Seconds without an arrival after which a batch is closed, and the most that its first change waits."""
_ABOUT_TO_ARRIVE = frozenset({State.WORKING, State.CHECKING})


def land(context: Context, claim: Claim) -> None:
    """Land until the queue is empty. A change that arrives after that starts the next job."""
    target.finish_open_landings(context, context.project(claim.subject))
    _QueueWorker(context, claim.subject).clear()
    with context.store.write() as tx:
        claims.finish(tx, claim)


class _QueueWorker:
    """One project's merge queue, for the length of its land job."""

    def __init__(self, context: Context, project: int) -> None:
        self._context = context
        self._project = project
        self._queue = MergeQueue(context, project)
        self._speculation = Speculation(context, self._queue)
        self._suspects = Suspects()

    def clear(self) -> None:
        try:
            while self._land_next():
                pass
        finally:
            self._speculation.give_up()
            self._forget(self._suspects.ids)

    def _forget(self, suspects: Iterable[int]) -> None:
        self._context.live.queue.notes.remove(suspects)
        self._context.live.queue.blamed.remove(suspects)

    def _land_next(self) -> bool:
        """One batch, or one suspect. False where nothing is left, or nothing may run."""
        project = self._context.project(self._project)
        project = replace(project, record=target.fetch(self._context, project))
        settle(self._context, self._project)
        if not self._trusted(project):
            return False
        with_upstream = project.record.upstream_pending
        alone = with_upstream and project.config.landing.by_pull_request
        batch = () if alone else self._next_batch(project, with_upstream)
        suspect = self._suspects.next(others_wait=bool(batch) or with_upstream)
        if suspect is not None:
            self._repeat(project, suspect)
        elif batch or with_upstream:
            self._queue.record_batch(project, batch, self._suspects.ids)
            self._land(project, batch, with_upstream)
        elif (gated := self._at_gate(project)) is not None:
            self._land(project, (gated,), with_upstream=False, hold=True)
        else:
            return False
        return True

    def _at_gate(self, project: ProjectContext) -> Ticket | None:
        with self._context.store.read() as tx:
            live = tickets.live(tx, project=self._project)
            return self._queue.at_gate(project, tx, self._suspects.without(live))

    def _land(
        self, project: ProjectContext, batch: tuple[Ticket, ...], with_upstream: bool, *, hold: bool = False
    ) -> None:
        room = self._queue.room(project)
        chain = Batch(self._context, project, batch, with_upstream=with_upstream)
        result = chain.land(self._speculation, self._suspects.ids, hold=hold)
        if result is None:
            return
        if result.agents_only:
            self._queue.learn(project, result.changes, green=result.green)
        if (blamed := result.blamed) is not None:
            self._suspects.add(Suspect(ticket=blamed.ticket, against=blamed.against, alone=blamed.alone, room=room))
            note = "checks failed; repeating them alone to rule out flakiness"
            self._context.live.queue.notes.update({blamed.ticket.id: note})
            names = tuple(receipt.name for receipt in blamed.against.red)
            self._context.live.queue.blamed.update({blamed.ticket.id: names})

    def _trusted(self, project: ProjectContext) -> bool:
        """The last batch may have brought a legion.toml that the person has not seen."""
        with self._context.store.read() as tx:
            return projects.is_trusted(tx, self._project, project.record.config_hash)

    def _next_batch(self, project: ProjectContext, with_upstream: bool) -> tuple[Ticket, ...]:
        """The batch that is being tested ahead, else the first of the queue, without those that cannot be tested."""
        ahead = () if with_upstream else self._speculation.next(project)
        batch = ahead or self._first(project)
        parked = {ticket.id: step for ticket in batch if (step := candidates.waits(self._context, ticket)) is not None}
        if batch and (unproven := trial.stops(self._context, project, batch)) is not None:
            parked = {ticket.id: unproven for ticket in batch}
        for ticket in batch:
            if ticket.id in parked:
                send_back(self._context, ticket, parked[ticket.id], EventKind.WARNING)
        return tuple(ticket for ticket in batch if ticket.id not in parked)

    def _first(self, project: ProjectContext) -> tuple[Ticket, ...]:
        self._wait_for_arrivals()
        with self._context.store.read() as tx:
            live = tickets.live(tx, project=self._project)
            return self._queue.first(project, tx, self._suspects.without(live))

    def _wait_for_arrivals(self) -> None:
        """While other tickets of the project are about to arrive, a short wait saves a round of checks."""
        queued, quiet_at = -1, 0.0
        deadline = time.monotonic() + _LONGEST_WAIT
        with self._context.store.commits() as committed:
            while True:
                committed.clear()
                with self._context.store.read() as tx:
                    states = [ticket.state for ticket in tickets.live(tx, project=self._project)]
                if _ABOUT_TO_ARRIVE.isdisjoint(states):
                    return
                before, queued = queued, states.count(State.LANDING)
                if queued != before:
                    quiet_at = time.monotonic() + _QUIET
                left = min(quiet_at, deadline) - time.monotonic()
                if left <= 0 or not committed.wait(left):
                    return

    def _repeat(self, project: ProjectContext, suspect: Suspect) -> None:
        """Run the failed test again with no other in parallel. If it is green, the change stays in the queue, and the
        receipt counts."""
        try:
            with self._context.store.read() as tx:
                if tickets.get(tx, suspect.ticket.id).version != suspect.ticket.version:
                    return
            cancel = CancelToken()
            test = speculation.repeated(self._context, project, suspect.ticket, suspect.against)
            with cancelling(self._context, [suspect.ticket], cancel), test:
                tested = confirmed(self._context, project, suspect.against, cancel)
            if tested.green:
                self._queue.unlearn(project, suspect.room)
            elif not (suspect.alone and self._park_for_red_target(project, suspect.ticket, tested)):
                self._send_back(project, suspect.ticket, tested)
        except Cancelled:
            return
        finally:
            self._forget([suspect.ticket.id])

    def _park_for_red_target(self, project: ProjectContext, ticket: Ticket, tested: CheckedCommit) -> bool:
        """Whether the target itself fails the same checks; then the ticket waits and is not blamed."""
        failing = gate.learn(self._context, project).red
        if not failing or not {one.command for one in tested.red} <= {one.command for one in failing}:
            return False
        detail = f"the target itself fails {failed_commands(failing)}"
        causes = dict.fromkeys(likely_cause(receipt.tail, receipt.exit_code) for receipt in tested.red)
        likely = "; likely cause: ".join(("", *filter(None, causes)))
        park = Park(ParkReason.RED_BASELINE, f"{detail}{likely}; `legion status` shows its output")
        send_back(self._context, ticket, park, EventKind.BASELINE_RED, tested.red)
        self._queue.forget(project)
        return True

    def _send_back(self, project: ProjectContext, ticket: Ticket, tested: CheckedCommit) -> None:
        before = project.target
        merged = candidate(self._context, project, before, ticket)
        if isinstance(merged, MergeConflict):
            send_back(self._context, ticket, sent_back_for_conflict(self._context, project, ticket, before, merged))
            return
        step = sent_back_for_red(self._context, ticket, before, merged.tree, tested)
        send_back(self._context, ticket, step, because=tested.red)


# Changes blamed by a failed test. They leave the queue until that test is repeated alone.
#
# While others wait, those go first: the repetition runs with no other test of the project. Nothing of this is stored;
# after a crash a suspect is a change in the queue like any other.

_MOST_BATCHES = 3
"""At most so many batches of others go before a suspect."""


@dataclass(frozen=True, kw_only=True)
class Suspect:
    ticket: Ticket
    against: CheckedCommit
    """The result that is red with it and not without it."""
    alone: bool
    """It is red on the target without any other change."""
    room: int
    """How many changes a batch could hold before this one was red."""


class Suspects:
    """Those of one project, for the length of one land job."""

    def __init__(self) -> None:
        self._waiting: list[Suspect] = []
        self._batches = 0

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(one.ticket.id for one in self._waiting)

    def add(self, suspect: Suspect) -> None:
        self._waiting.append(suspect)

    def without(self, tickets: Iterable[Ticket]) -> tuple[Ticket, ...]:
        """Those that are no suspects. A ticket that was removed and queued again has a new version and is no longer
        one.
        """
        known = {(one.ticket.id, one.ticket.version) for one in self._waiting}
        return tuple(ticket for ticket in tickets if (ticket.id, ticket.version) not in known)

    def next(self, others_wait: bool) -> Suspect | None:
        """The suspect whose turn it is before the next batch of others."""
        if not self._waiting:
            return None
        if others_wait and self._batches < _MOST_BATCHES:
            self._batches += 1
            return None
        self._batches = 0
        return self._waiting.pop(0)


# Decides races whose lanes have all finished or are out, before the merge queue takes any of them.
#
# The decision is one transaction: the winner stays in the queue, the others are stopped with their changes kept, and
# what comes after any lane comes after the winner. Killed before it, the next land job decides the same again.

_WEIGHTS = {Severity.BLOCKING: 100}


def settle(context: Trees, project: int) -> None:
    with context.store.read() as tx:
        live = {ticket.id: ticket for ticket in tickets.live(tx, project=project)}
        ready = [lanes for lanes in races.undecided(tx).values() if _is_ready(lanes, live)]
    for lanes in ready:
        _settle(context, project, lanes, live)


def _is_ready(lanes: Sequence[Lane], live: dict[int, Ticket]) -> bool:
    there = tuple(races.standings(lanes, live).values())
    return LaneStanding.FINISHED in there and not is_open(there)


def _settle(context: Trees, project: int, lanes: Sequence[Lane], live: dict[int, Ticket]) -> None:
    there = races.standings(lanes, live)
    done = [live[id] for id, one in there.items() if one is LaneStanding.FINISHED]
    if (made := _combination(context, project, lanes, done)) is not None:

        def combine(tx: Transaction) -> None:
            races.join(tx, lanes, tickets.create(tx, project, made, rule=Rule.RACE).id)

        _go_on(context, project, lanes, live, combine)
        return
    lines = lines_changed(context, project, done)
    with context.store.read() as tx:
        finished = [FinishedLane(ticket=one.id, lines=lines[one.id], findings=_findings(tx, one)) for one in done]
        rankings = _rankings(tx, done)
    result = decide(finished, rankings, races.combined(lanes))
    if (first := result.read_first) is not None:
        # One independent reader, of this ticket, ranks the changes of all lanes.
        def read(tx: Transaction) -> None:
            tickets.move(tx, first, AskReview((REVIEWER,), COMPARES), rule=Rule.RACE)

        _go_on(context, project, lanes, live, read)
        return
    crash.reach(Point.RACE_BEFORE_DECISION)
    with context.store.write() as tx:
        if _moved(tx, project, lanes, live):
            return
        _end(tx, project, lanes, finished, result, live)
    crash.reach(Point.RACE_AFTER_DECISION)


def _combination(context: Trees, project: int, lanes: Sequence[Lane], done: Sequence[Ticket]) -> TicketSpec | None:
    """One more attempt, where the person wants one and there is something to combine."""
    with context.store.read() as tx:
        told = [one.data for one in events.of_ticket(tx, lanes[0].origin) if one.kind is EventKind.RACE_STARTED]
        wanted = any(one.get("race") == lanes[0].race and one.get("combine") for one in told)
        if not wanted or races.combined(lanes) is not None:
            return None
        spec = tickets.get(tx, lanes[0].origin).spec
    changes = {one.id: one.change for one in done if one.change is not None}
    return combination(spec, {id: context.hub(project).diff(one.base, one.commit) for id, one in changes.items()})


def _go_on(
    context: Board, project: int, lanes: Sequence[Lane], live: dict[int, Ticket], change: Callable[[Transaction], None]
) -> None:
    """Something else has to happen before the decision."""
    crash.reach(Point.RACE_BEFORE_READING)
    with context.store.write() as tx:
        if _moved(tx, project, lanes, live):
            return
        change(tx)
    crash.reach(Point.RACE_AFTER_READING)


def _moved(tx: ReadTransaction, project: int, lanes: Sequence[Lane], live: dict[int, Ticket]) -> bool:
    """A lane moved meanwhile; the next land job decides."""
    now = {ticket.id: ticket for ticket in tickets.live(tx, project=project)}
    return _versions(lanes, now) != _versions(lanes, live)


def _versions(lanes: Sequence[Lane], live: dict[int, Ticket]) -> dict[int, int]:
    return {lane.ticket: live[lane.ticket].version for lane in lanes if lane.ticket in live}


def _end(
    tx: Transaction,
    project: int,
    lanes: Sequence[Lane],
    finished: Sequence[FinishedLane],
    result: RaceResult,
    live: dict[int, Ticket],
) -> None:
    assert result.winner is not None, "there is one"
    assert result.why is not None, "there is a winner"
    races.decide(tx, project, finished, result.winner, result.why)
    for lane in lanes:
        if lane.ticket == result.winner:
            continue
        if lane.ticket in live:
            why = result.why.get(lane.ticket, "it did not finish")
            reason = f"lost the race to ticket {result.winner}: {why}; its change is kept"
            tickets.move(tx, lane.ticket, Stop(reason), rule=Rule.RACE)
        for other in tickets.dependants(tx, lane.ticket):
            tickets.replace_after(tx, other, lane.ticket, [result.winner])


def _rankings(tx: ReadTransaction, done: Sequence[Ticket]) -> list[dict[int, int]]:
    """The places of these tickets in the rankings of readers, the last one first."""
    commits = {one.id: one.change.commit for one in done if one.change is not None}
    given = [one for ticket in done for one in verdicts.of_ticket(tx, ticket.id) if one.verdict and one.verdict.ranking]
    found = [one.verdict.ranking for one in sorted(given, key=lambda one: one.id, reverse=True) if one.verdict]
    return [{id: ranking.index(commit) for id, commit in commits.items() if commit in ranking} for ranking in found]


def _findings(tx: ReadTransaction, ticket: Ticket) -> int | None:
    """The weight of what readers found in this change; None where none has read it."""
    assert ticket.change is not None, "it is proven"
    given = [
        one.verdict
        for one in verdicts.of_ticket(tx, ticket.id)
        if one.commit == ticket.change.commit and one.given_at is not None
    ]
    if not given:
        return None
    return sum(_WEIGHTS.get(finding.weight, 1) for one in given if one is not None for finding in one.findings)
