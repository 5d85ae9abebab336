"""Housekeeping: warm worktrees, worktrees of landed tickets, the trash, loose objects, the daemon's own memory.

Runs in a thread of its own, after events and at intervals. Work that it leaves undone costs only speed.
"""

from __future__ import annotations

import functools
import gc
import logging
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from legion.domain.agents.agent import ROOT, Agent, ClaimedTicket
from legion.domain.agents.mail import MessageKind
from legion.domain.projects import Project
from legion.domain.questions import QuestionKind
from legion.domain.runs import seated
from legion.domain.scheduling.after_turn import REMINDER, IdleStep, idle_step, question, reminder
from legion.domain.tickets.ticket import State
from legion.jobs.background.lesson_proposals import LessonProposals
from legion.jobs.background.notifier import Notifier
from legion.jobs.background.trial_runner import TrialRunner
from legion.jobs.background.watchdog import Watchdog
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.landing import target
from legion.jobs.landing.conflict_prediction import ConflictPredictor
from legion.jobs.leader.notices import LeaderNotices
from legion.jobs.loop import BackgroundLoop
from legion.jobs.plan.result_conditions import ResultConditions, read_what_is_over
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import quota, rewind_points, setup
from legion.runner import launch
from legion.runner.launch import LivingRun
from legion.runner.spec import RunFolder, RunnerError
from legion.store import events
from legion.store.board import plan_approvals, projects, questions, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents, mail, ticket_holders
from legion.store.work import runs
from legion.system import kernel

log = logging.getLogger(__name__)

_EVERY = 600.0
_QUIET = 1.0
_DAY = 86_400.0
_TRASH_EVERY = 60.0
_PRUNE_EVERY, _KEPT_HOURS = 3600.0, 24
_MEMORY_EVERY = 30.0
_BURST = 10.0
"""Seconds for which the pool is left alone while runs start and changes land: trees that are made meanwhile cost others
time, and have to be moved when the changes have landed.
"""


class Housekeeper(BackgroundLoop):
    context: Context

    def __init__(self, context: Context) -> None:
        super().__init__(context, "housekeeper")
        self._leader_notices = LeaderNotices(context)
        self._lesson_proposals = LessonProposals(context)
        self._notifier = Notifier(context)
        self._result_conditions = ResultConditions(context)
        self._woken: list[BackgroundLoop] = [TrialRunner(context), self._notifier]
        """Loops that look after every event; the others have a rhythm of their own."""
        self._timed: list[BackgroundLoop] = [
            BranchWatcher(context),
            ConflictPredictor(context),
            quota.QuotaWatch(context),
            Watchdog(context),
        ]
        self._backoffs: dict[int, tuple[float, float]] = {}
        """By project: how long it backs off after an error, and until when."""
        self._seen = 0
        """The last event that was read."""
        self._round_at = 0.0
        """When all projects are tidied again, with or without events."""
        self._prune_at = 0.0
        """When ended jobs of the queue for machines are deleted again."""
        self._memory_at = 0.0
        """When memory that is no longer used is returned to the system again."""
        self._pending: set[int] = set()
        """Projects with events since they were tidied."""
        self._waiting_since: dict[int, float] = {}
        """By project: since when its pool waits for the end of a burst of tickets."""

    def link_to(self, page_url: Callable[[], str]) -> None:
        """Notifications name a place below this address."""
        self._notifier.page_url = page_url

    def also(self, *loops: BackgroundLoop) -> None:
        """Start and stop these with the others. They need use cases, so the daemon makes them."""
        self._timed.extend(loops)

    def start(self) -> None:
        super().start()
        for loop in (*self._woken, *self._timed):
            loop.start()

    def poke(self) -> None:
        super().poke()
        for loop in self._woken:
            loop.poke()

    def stop(self) -> None:
        for loop in (*self._woken, *self._timed):
            loop.stop()
        super().stop()

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            for what, step in self._steps():
                self._attempt(f"housekeeping: {what}", step)
            self._wake.wait(_BURST if self._waiting_since else _EVERY)
            # Warming worktrees must not slow down runs that start now.
            self._stopping.wait(_QUIET)

    def _steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "the claims of idle agents", lambda: look(self.context)
        yield "notices to leaders", self._leader_notices.look
        yield "conditions on results", self._result_conditions.look
        yield "goals that are over", lambda: read_what_is_over(self.context)
        yield "proposed lessons", self._lesson_proposals.look
        yield "tidying", self._tidy_due
        yield "the queue of jobs", self._prune_queue
        yield "memory", self._return_memory

    def _tidy_due(self) -> None:
        for project in self._due():
            self._attempt(f"tidying project {project.name}", functools.partial(self._tidy, project))

    def _prune_queue(self) -> None:
        engine = self.context.machines.engine
        if engine is not None and time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + _PRUNE_EVERY
            engine.prune(_KEPT_HOURS)

    def _return_memory(self) -> None:
        """Python looks for cycles of dead objects too rarely for a process that is meant to stay small for months."""
        if time.monotonic() >= self._memory_at:
            self._memory_at = time.monotonic() + _MEMORY_EVERY
            gc.collect()
            kernel.return_free_memory()

    def _due(self) -> list[Project]:
        """Trusted projects with events or work left; at intervals all of them."""
        everywhere = time.monotonic() >= self._round_at
        with self.context.store.read() as tx:
            # The number first: an event between the two reads is read again.
            newest = events.last(tx)
            there, concerned = projects.all(tx), events.concerned(tx, self._seen)
            # An event that names no project may be about any.
            everywhere = everywhere or None in concerned
            self._pending |= {project.id for project in there if everywhere or project.id in concerned}
            self._seen = newest
            if everywhere:
                self._round_at = time.monotonic() + _EVERY
            return [
                project
                for project in there
                if project.id in self._pending
                and project.target
                and projects.is_trusted(tx, project.id, project.config_hash)
            ]

    def _tidy(self, record: Project) -> None:
        now = self.context.clock()
        length, until = self._backoffs.get(record.id, (_QUIET, 0.0))
        if now < until:
            return
        try:
            project = self.context.project_of(record)
            since = self._waiting_since.get(record.id, math.inf)
            done = tidy(self.context, project, patient=time.monotonic() - since < _BURST)
            project.hub.tidy_if_crowded()
            self._backoffs.pop(record.id, None)
            if done:
                self._waiting_since.pop(record.id, None)
                self._pending.discard(record.id)
            else:
                self._waiting_since.setdefault(record.id, time.monotonic())
        except Exception as trouble:  # the next round may work, and no other part tidies up
            log.warning("housekeeping in %s failed, will retry: %s", record.name, " ".join(str(trouble).split()))
            self._backoffs[record.id] = (min(length * 4, _EVERY), now + min(length * 4, _EVERY))


def tidy(context: Context, project: ProjectContext, *, patient: bool = False) -> bool:
    """False where the pool was left alone because of a burst of tickets, as `patient` asks, and has to be seen to."""
    if not project.folder.is_dir():
        # The data folder is gone, and is not made again: the daemon is about to end.
        return True
    _put_away(context, project)
    rewind_points.clean(context, project)
    settings = context.user.worktrees
    cap = int(settings.disk_gb * 2**30)
    project.worktrees.empty_trash(
        older_than=settings.trash_days * _DAY, keep_bytes=cap, now=context.clock(), every=_TRASH_EVERY
    )
    count = settings.warm(project.config.agents.parallel)
    setup.drop_stale_pool(project)
    with context.store.read() as tx:
        live = tickets.live(tx, project.id)
    # Runs start or changes land just now. The event of the last of them brings the housekeeper back.
    moving = any(ticket.state in (State.QUEUED, State.CHECKING, State.LANDING) for ticket in live)
    # Nothing does, but soon may: of many tickets that started together the first may end at any time.
    started = any(ticket.state is State.WORKING and context.clock() - ticket.moved_at < _BURST for ticket in live)
    low = project.worktrees.waiting() * 4 < count
    if patient and (started or (moving and low)):
        return False
    target = project.target
    if not moving:
        project.worktrees.freshen(target)

    def prepare(tree: Path) -> None:
        setup.ensure(context, project, tree, shows=target, landed=target)

    if low or not moving:
        project.worktrees.fill(count, target, disk_cap_bytes=cap, prepare=prepare if project.config.setup.run else None)
    return True


def _put_away(context: Board, project: ProjectContext) -> None:
    """Move worktrees of landed or dropped tickets and fired agents to the trash."""
    seats = {name: found for name in project.worktrees.names() if (found := seated(name)) is not None}
    of_tickets = {name: number for name, (kind, number, _) in seats.items() if kind == "ticket"}
    readers = {name for name, (kind, _, role) in seats.items() if kind == "plan" or (kind == "ticket" and role)}
    with context.store.read() as tx:
        states = tickets.states_of(tx, of_tickets.values())
        over = {number for number, state in states.items() if state is State.DONE}
        over |= tickets.dropped(tx, of_tickets.values())
        at_work = {run.seat for run in runs.active(tx)}
        fired = agents.gone(tx, project.id)
    # A reviewer or planner that has ended does not use its worktree again.
    left = {name for name, number in of_tickets.items() if number in over} | readers
    for name in sorted((left - at_work) | (fired & seats.keys())):
        project.worktrees.discard(name)


def end_left_over_commands(context: Board) -> None:
    """Stop checks and setups of an earlier daemon: no job waits for them, and they run again where they are needed.

    Their trees are needed at once, so this waits for their end. A runner that is just starting finds no spec.
    """
    for folder in context.data.runs.iterdir():
        if folder.name.startswith(("ticket-", "agent-", "plan-")) or RunFolder(folder).result.exists():
            continue
        RunFolder(folder).spec.unlink(missing_ok=True)
        if not isinstance(launch.settle(folder), LivingRun):
            continue
        try:
            launch.stop(folder, grace=0)
            launch.wait(folder)
        except RunnerError as trouble:
            log.warning("a check of the last daemon still runs: %s", trouble.message)


# Polls the person's branch for new commits while tickets are open.
#
# Reads a few file times; git is asked only if one of them changed.

_LOOK_EVERY = 2.0

Times = tuple[int | None, ...]


class BranchWatcher(BackgroundLoop):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "branch-watcher")
        self._seen: dict[int, Times] = {}

    def _repeat(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY):
            self._attempt("the check for new commits", self._check_all)

    def _check_all(self) -> None:
        for project in self._with_tickets():
            what = f"reading the branch {project.branch} of {project.name}"
            self._attempt(what, functools.partial(self._check, project))

    def _with_tickets(self) -> list[Project]:
        with self.context.store.read() as tx:
            busy = {ticket.project for ticket in tickets.live(tx)}
            return [project for project in projects.all(tx) if project.id in busy]

    def _check(self, project: Project) -> None:
        times = _times(project)
        if self._seen.get(project.id) != times:
            target.fetch(self.context, self.context.project_of(project))
            self._seen[project.id] = times


def _times(project: Project) -> Times:
    """The times of the files in which git stores branches; None for a missing one."""
    common = Path(project.common_dir)
    places = (common / "refs/heads" / project.branch, common / "packed-refs", common / "reftable/tables.list")
    return tuple(place.stat().st_mtime_ns if place.exists() else None for place in places)


# Finds standing agents that hold a ticket and do nothing, reminds them, and then asks the person.

_ANSWER_WITHIN = 86_400.0
_MOST_MAIL = 200
"""The last messages of an agent among which its reminders are counted."""


def look(context: Board) -> None:
    """One look at every claimed ticket. Costs one query where no agent holds any; writes only where a step is due."""
    with context.store.read() as tx:
        due = _due(tx) if ticket_holders.holders(tx) else []
    if due:
        with context.store.write() as tx:
            for agent, holding, step in _due(tx):
                _take(tx, agent, holding, step)


def _due(tx: ReadTransaction) -> list[tuple[Agent, ClaimedTicket, IdleStep]]:
    held = ((agent, ticket_holders.current(tx, agent.id)) for agent in agents.standing(tx))
    steps = ((agent, holding, _step(tx, agent, holding)) for agent, holding in held if holding is not None)
    return [(agent, holding, step) for agent, holding, step in steps if step is not IdleStep.WAIT]


def _step(tx: ReadTransaction, agent: Agent, holding: ClaimedTicket) -> IdleStep:
    latest = next(iter(runs.of_agent(tx, agent.number, limit=1)), None)
    if holding.submitted or (latest is not None and latest.ended_at is None):
        return IdleStep.WAIT
    since = max(holding.since, latest.ended_at or 0.0) if latest is not None else holding.since
    reminders = sum(
        message.recipient == agent.id and message.sent_at >= holding.since and message.text.startswith(REMINDER)
        for message in mail.about(tx, [agent.id], limit=_MOST_MAIL)
    )
    return idle_step(idle_for=tx.now - since, reminders=reminders, waits=_waits(tx, agent, holding))


def _take(tx: Transaction, agent: Agent, holding: ClaimedTicket, step: IdleStep) -> None:
    ticket = tickets.get(tx, holding.ticket)
    title = ticket.spec.title[:80]
    if step is IdleStep.REMIND:
        text = reminder(ticket.id, title)
        mail.send(tx, sender=ROOT, recipient=agent.id, kind=MessageKind.NOTICE, text=text, about=str(ticket.id))
        return
    questions.ask(
        tx,
        key=_key(agent, holding),
        kind=QuestionKind.IDLE,
        project=ticket.project,
        agent=agent.id,
        ticket=ticket.id,
        words=question(agent.name, ticket.id, title),
        deadline=tx.now + _ANSWER_WITHIN,
    )


def _key(agent: Agent, holding: ClaimedTicket) -> str:
    """One question for each claim: a person who leaves the ticket with the agent is not asked again."""
    return f"{QuestionKind.IDLE.value}:{agent.id}:{holding.number}"


def _waits(tx: ReadTransaction, agent: Agent, holding: ClaimedTicket) -> bool:
    """Whether there is a reason to do nothing: mail on its way, a limit, a plan, a question, a paused project."""
    if agent.owes or agent.held_until is not None or mail.waiting(tx, agent.id) or mail.offered(tx, agent.id):
        return True
    if questions.by_key(tx, _key(agent, holding)) is not None:
        return True
    if questions.open_ones(tx, agent=agent.id) or questions.open_ones(tx, ticket=holding.ticket):
        return True
    plan = plan_approvals.of_ticket(tx, holding.ticket)
    if plan is not None and plan.only_reads:
        return True
    return projects.get(tx, agent.project).paused
