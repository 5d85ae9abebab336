"""Looks now and then whether the runs at work get on, and takes the next step for one that does not.

What was seen lies in journals, in the process table and in the store, so a new daemon judges as the last one would
have. A step is written down before it is taken, under the name that the run's journal will show it by; whoever finds
it written and not taken takes it, once.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from legion.domain.agents.teams import RolePart
from legion.domain.errors import LegionError
from legion.domain.runs import Run
from legion.domain.tickets.ticket import State as TicketState
from legion.domain.watchdog import activity as course
from legion.domain.watchdog import diagnosis, observation
from legion.domain.watchdog.activity import Activity, JournalFact
from legion.domain.watchdog.diagnosis import RULES, Intervention, RunFacts, State, WatchdogLimits, WatchdogStep
from legion.domain.watchdog.observation import Observation
from legion.gateway.accounting import activity
from legion.gateway.files.folder import GatewayFolder
from legion.git.merge.prediction import OpenChange, Prediction
from legion.jobs.agent.model_access import OwnLogin
from legion.jobs.background import watchdog_messages
from legion.jobs.context import Context
from legion.runner import launch, load
from legion.runner.journal import JournalEvent, JournalReader
from legion.runner.load import RootProcesses, Table
from legion.runner.spec import RunFolder, RunnerError, RunSpec, read_spec
from legion.store.board import tickets
from legion.store.staff import agents
from legion.store.work import runs
from legion.store.work import watchdog as store
from legion.system import crash
from legion.system.crash import Point

log = logging.getLogger(__name__)

_REST = 1.0
"""Seconds until the settings are read again where nobody wants to be looked at."""
_SHARE = 10
"""A look that took a second is followed by so many of rest."""


@dataclass(kw_only=True)
class _JournalProgress:
    """What was read of a run so far, to read on from there. Nothing in it that could not be read again."""

    run: Run
    folder: Path
    journal: JournalReader
    spec: RunSpec
    happenings: list[JournalFact] = field(default_factory=list)
    course: Activity = field(default_factory=Activity)
    beginning: list[JournalEvent] = field(default_factory=list)
    """What was read until its program had started."""
    root: RootProcesses | None = None
    watch: Observation
    kept: Observation | None
    processes: int | None = None
    dead_since: float | None = None
    thought_at: float
    """When its model was last seen to be asked; a new daemon begins anew."""

    @property
    def talks(self) -> bool:
        return self.spec.profile.capabilities.talks


class Watchdog:
    def __init__(self, context: Context) -> None:
        self.context = context
        self._stopping = threading.Event()
        self._seen: dict[int, _JournalProgress] = {}
        self._predictions: dict[int, Prediction] = {}
        self._thread = threading.Thread(target=self._watch, name="watchman", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _watch(self) -> None:
        rest = 0.0
        while not self._stopping.wait(rest):
            wanted = self.context.user.liveness
            began = self.context.clock()
            try:
                if wanted.watch:
                    self.look()
                else:
                    self._forget(())
            except (LegionError, OSError) as trouble:
                log.warning("nobody looks whether runs get on at the moment: %s", trouble)
            took = max(0.0, self.context.clock() - began)
            rest = max(wanted.every, _SHARE * took) if wanted.watch else _REST

    def look(self) -> None:
        """One round over all runs at work."""
        with self.context.store.read() as tx:
            # Who advises or reads changes nothing, and has its limit of time.
            active = {run.id: run for run in runs.active(tx) if run.part is RolePart.BUILD}
            taken = store.helps(tx, active)
            new = [id for id in active if id not in self._seen]
            known = store.watches(tx, new)
        self._forget(active)
        for id in new:
            self._meet(active[id], known.get(id))
        if not self._seen:
            return
        everybody = load.table()
        thinking = activity.open_requests(GatewayFolder(self.context.data.gateway))
        for id, seen in self._seen.items():
            seen.run = active[id]
            try:
                self._look(seen, taken.get(id, ()), everybody, thinking)
            except (LegionError, OSError) as trouble:
                log.warning("nobody knows whether run %s gets on: %s", seen.run.name, trouble)

    def _forget(self, active: Mapping[int, Run] | tuple[()]) -> None:
        for gone in [id for id in self._seen if id not in active]:
            del self._seen[gone]
        for gone in [id for id in self.context.signs if id not in active]:
            self.context.signs.pop(gone, None)
        busy = {seen.run.project for seen in self._seen.values()}
        for idle in set(self._predictions) - busy:
            self._predictions.pop(idle).forget()

    def _meet(self, run: Run, known: Observation | None) -> None:
        folder = self.context.data.runs / run.name
        try:
            spec = read_spec(folder)
        except RunnerError:
            # Its tree is still being made.
            return
        watch = known or Observation(run=run.id)
        journal = JournalReader(folder)
        self._seen[run.id] = _JournalProgress(
            run=run,
            folder=folder,
            journal=journal,
            spec=spec,
            watch=watch,
            kept=known,
            thought_at=self.context.clock(),
        )

    def _look(
        self,
        seen: _JournalProgress,
        taken: tuple[Intervention, ...],
        everybody: Table | None,
        thinking: Mapping[str, float] | None,
    ) -> None:
        wanted = self.context.workshop(seen.run.project).config.liveness
        if RunFolder(seen.folder).result.exists() or not wanted.on:
            self.context.signs.pop(seen.run.id, None)
            return
        patience = WatchdogLimits(
            repeats=wanted.repeats, hang=wanted.hang, program=wanted.program, silence=wanted.silence
        )
        now = self.context.clock()
        self._read_on(seen)
        if seen.root is None:
            return
        if not self._measure(seen, everybody, now):
            return
        if seen.talks and diagnosis.suspected(seen.course, taken):
            self._look_at_files(seen, now)
        self._keep(seen)
        if taken and taken[-1].taken_at is None:
            take(self.context, seen.run, taken[-1], after=seen.course.last_number, again=True)
            return
        by_gateway = seen.run.access not in ("", OwnLogin.label)
        thinks = seen.run.name in thinking if by_gateway and thinking is not None else None
        if thinks is not False:
            seen.thought_at = now
        facts = self._facts(seen, taken, thinks)
        state = diagnosis.judge(facts, patience, now)
        self._show(seen.run, state, facts, patience)
        action = diagnosis.next_step(state, facts, patience)
        if action is not None and self._wanted(seen.run):
            intervene(self.context, seen.run, state, action, facts, now)

    def _show(self, run: Run, state: State, facts: RunFacts, patience: WatchdogLimits) -> None:
        """Until a step has helped, the board says why it was taken."""
        helped = facts.taken[-1:] if diagnosis.standing(facts, patience) is not None else ()
        words = state.words or next((step.sign for step in helped), "")
        if words:
            self.context.signs[run.id] = words
        else:
            self.context.signs.pop(run.id, None)

    def _read_on(self, seen: _JournalProgress) -> None:
        events = seen.journal.read_on()
        if not events:
            return
        if seen.root is None:
            # A look may fall between the lines that name its processes.
            seen.beginning += events
            seen.root = load.root_of(seen.beginning)
        seen.happenings += [_happening(one) for one in events]
        seen.course = course.read(seen.happenings)

    def _measure(self, seen: _JournalProgress, everybody: Table | None, now: float) -> bool:
        """What its processes did since. False where its runner is gone: whoever waits for it sees to that."""
        assert seen.root is not None, "a run is measured once its program has started"
        if everybody is not None and not load.lives(seen.root, everybody):
            if not launch.is_held(seen.folder):
                return False
            seen.dead_since = seen.dead_since if seen.dead_since is not None else now
            return True
        seen.dead_since = None
        walled = seen.spec.sandbox is not None
        used = None
        if everybody is not None:
            used = load.load(seen.root, everybody, walled=walled, tools_only=seen.talks)
        seen.processes = None if used is None else used.count
        seen.watch = observation.felt(seen.watch, used, now)
        return True

    def _look_at_files(self, seen: _JournalProgress, now: float) -> None:
        """Only where its calls alone make it look as if it went round in circles."""
        if seen.watch.tree and seen.course.last_number <= seen.watch.tree_since:
            return
        change = self._in_work(seen.run)
        if change is None:
            return
        number = seen.course.last_number
        tree = self._prediction(seen.run.project).tree(change)
        if tree is not None:
            seen.watch = observation.looked(seen.watch, tree, number, now)

    def _in_work(self, run: Run) -> OpenChange | None:
        project_context = self.context.workshop(run.project)
        with self.context.store.read() as tx:
            base = tickets.get(tx, run.ticket).base if run.ticket is not None else None
            if run.agent is not None:
                base = agents.numbered(tx, run.agent).base
        if base is None:
            return None
        index = project_context.worktrees.index(run.seat)
        return OpenChange(id=run.id, base=base, tree=project_context.worktrees.path(run.seat), index=index)

    def _prediction(self, project: int) -> Prediction:
        if project not in self._predictions:
            project_context = self.context.workshop(project)
            self._predictions[project] = Prediction(project_context.hub, project_context.folder / "liveness")
            # Of the daemon before us; its index may name what is not there any more.
            self._predictions[project].forget()
        return self._predictions[project]

    def _keep(self, seen: _JournalProgress) -> None:
        if not observation.worth_keeping(seen.kept, seen.watch):
            return
        with self.context.store.write() as tx:
            store.keep(tx, seen.watch)
        seen.kept = seen.watch

    def _facts(self, seen: _JournalProgress, taken: tuple[Intervention, ...], thinks: bool | None) -> RunFacts:
        return RunFacts(
            course=seen.course,
            talks=seen.talks,
            started_at=seen.run.started_at,
            dead_since=seen.dead_since,
            thinks=thinks,
            thought_at=seen.thought_at,
            processes=seen.processes,
            idle_since=seen.watch.idle_since,
            tree_since=seen.watch.known_tree_since,
            tree_at=seen.watch.tree_at,
            taken=taken,
        )

    def _wanted(self, run: Run) -> bool:
        """A person may have stopped it a moment ago."""
        with self.context.store.read() as tx:
            if runs.get(tx, run.id).ended_at is not None:
                return False
            return run.ticket is None or tickets.get(tx, run.ticket).state is TicketState.WORKING


def _happening(event: JournalEvent) -> JournalFact:
    """Without the long texts, since all of a run are kept."""
    facts = {name: event.facts[name] for name in course.TOLD_BY if name in event.facts}
    return JournalFact(number=event.number, time=event.time, kind=event.kind, facts=facts)


def intervene(context: Context, run: Run, state: State, action: WatchdogStep, facts: RunFacts, now: float) -> None:
    """Write the step down, then take it."""
    wanted = Intervention(
        run=run.id,
        number=len(facts.taken) + 1,
        action=action,
        rule=RULES[type(state)],
        sign=state.words,
        why=watchdog_messages.why(state, now),
        advice=watchdog_messages.words(action, state, now),
        message=str(uuid.uuid4()),
        after=facts.course.last_number,
        at=now,
    )
    with context.store.write() as tx:
        store.note(tx, run, wanted)
    context.signs[run.id] = wanted.sign
    log.info("run %s: %s, because %s", run.name, action.value, wanted.why)
    crash.reach(Point.LIVE_AFTER_NOTE)
    take(context, run, wanted, after=wanted.after)


def take(context: Context, run: Run, step: Intervention, *, after: int, again: bool = False) -> None:
    """Once: where somebody before us may have taken it, the journal says so."""
    folder = context.data.runs / run.name
    try:
        if not (again and _was_told(folder, step)):
            match step.action:
                case WatchdogStep.NUDGE:
                    launch.tell(folder, step.message, step.advice)
                case WatchdogStep.INTERRUPT:
                    launch.interrupt(folder, step.message, step.advice)
                case WatchdogStep.END:
                    launch.stop(folder)
    except RunnerError as silent:
        # The next look takes it, if the runner has not heard it after all.
        log.warning("run %s could not be reached: %s", run.name, silent.message)
        return
    crash.reach(Point.LIVE_AFTER_STEP)
    with context.store.write() as tx:
        store.taken(tx, step, after=after)


def _was_told(folder: Path, step: Intervention) -> bool:
    return any(
        event.kind == "told" and event.facts.get("id") == step.message for event in JournalReader(folder).read_on()
    )


def doing(context: Context, run: Run, steps: tuple[Intervention, ...], now: float, *, working: str) -> str:
    """For the board: `loops: 6 times ..., nudged 2 min ago`. `working` is said of one that gets on."""
    words = context.signs.get(run.id) or working
    if not steps:
        return words
    return f"{words}, {diagnosis.DONE[steps[-1].action]} {watchdog_messages.lasted(max(0.0, now - steps[-1].at))} ago"
