"""The land job: works through one project's merge queue, batch by batch, until it is empty.

A change that a failed test blames is tested again alone before it goes back to its agent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from legion.domain.checks import failed_commands
from legion.domain.events import EventKind
from legion.domain.failure_causes import likely_cause
from legion.domain.scheduling.decide import Claim
from legion.domain.tickets.ticket import Park, ParkReason, State, Ticket
from legion.git.merge.candidates import MergeConflict
from legion.jobs.checks import held_out, trial
from legion.jobs.checks.candidates import candidate
from legion.jobs.checks.execution import CheckedCommit
from legion.jobs.checks.job import confirmed, sent_back_for_conflict, sent_back_for_red
from legion.jobs.checks.ticket_watch import cancelling
from legion.jobs.context import Context
from legion.jobs.landing import baseline, live_tests, races, target, upstream
from legion.jobs.landing.batch import Batch
from legion.jobs.landing.queue import MergeQueue
from legion.jobs.landing.send_back import send_back
from legion.jobs.landing.speculation import Speculation
from legion.jobs.landing.suspects import Suspect, Suspects
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.cancellation import Cancelled, CancelToken
from legion.store.board import projects, tickets
from legion.store.work import claims

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
        project = replace(project, record=upstream.fetch(self._context, project))
        races.settle(self._context, self._project)
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
        parked = {ticket.id: step for ticket in batch if (step := held_out.waits(self._context, ticket)) is not None}
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
            test = live_tests.repeated(self._context, project, suspect.ticket, suspect.against)
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
        failing = baseline.learn(self._context, project).red
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
            send_back(self._context, ticket, sent_back_for_conflict(ticket, before, merged))
            return
        step = sent_back_for_red(ticket, before, merged.tree, tested)
        send_back(self._context, ticket, step, because=tested.red)
