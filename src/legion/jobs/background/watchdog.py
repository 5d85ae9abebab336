"""Checks at intervals whether running agents make progress, and intervenes in a run that does not.

All evidence is in journals, the process table and the store, so a new daemon judges as the last one would have. A step
is stored before it is taken, under the id that the run's journal will show. A stored step that was not taken is taken
once.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from legion.domain.agents.teams import RolePart
from legion.domain.errors import LegionError
from legion.domain.runs import Run
from legion.domain.tickets.ticket import State as TicketState
from legion.domain.watchdog import diagnosis
from legion.domain.watchdog.activity import (
    USED_FACTS,
    Activity,
    ActivityReader,
    JournalFact,
    Observation,
    felt,
    looked,
    worth_keeping,
)
from legion.domain.watchdog.diagnosis import (
    RULES,
    Dead,
    HangingTool,
    Intervention,
    Looping,
    Progress,
    RunFacts,
    Silent,
    State,
    WaitingForPermission,
    WatchdogLimits,
    WatchdogStep,
)
from legion.gateway.accounting import activity
from legion.gateway.files.folder import GatewayFolder
from legion.git.merge.prediction import OpenChange, Prediction
from legion.jobs.agent.model_access import OWN_ACCOUNT, OwnLogin
from legion.jobs.board import Board
from legion.jobs.loop import BackgroundLoop
from legion.jobs.trees import Trees
from legion.jobs.workspace.sandbox import live_tree
from legion.runner import launch, load
from legion.runner.journal import JournalEvent, JournalReader
from legion.runner.load import RootProcesses, Table
from legion.runner.spec import RunFolder, RunnerError, RunSpec, read_spec
from legion.store.board import tickets
from legion.store.staff import agents
from legion.store.work import runs, watchdog
from legion.system import crash
from legion.system.crash import Point

log = logging.getLogger(__name__)

_OFF = 1.0
"""Seconds until the settings are read again while the watchdog is switched off."""
_JUMP = 30.0
"""Seconds by which two clocks may differ between two checks before one of them was set."""
_SHARE = 10
"""A check that took a second is followed by a pause of so many."""


@dataclass(kw_only=True)
class _JournalProgress:
    """What was read of a run so far. All of it can be read again."""

    run: Run
    folder: Path
    journal: JournalReader
    spec: RunSpec
    reader: ActivityReader = field(default_factory=ActivityReader)
    activity: Activity = field(default_factory=Activity)
    beginning: list[JournalEvent] = field(default_factory=list)
    """The journal until its program had started."""
    root: RootProcesses | None = None
    watch: Observation
    kept: Observation | None
    processes: int | None = None
    dead_since: float | None = None
    thought_at: float
    """When a model request of it was last open; a new daemon starts from its own start."""

    @property
    def talks(self) -> bool:
        return self.spec.profile.capabilities.talks


class ClockWatch:
    """Notices that the clock was set, or that the machine was asleep, by a clock that does neither."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last: tuple[float, float] | None = None
        self.set_at = 0.0
        """When the last jump was seen."""

    def look(self, steady: float) -> None:
        now = self._clock()
        if self._last is not None and abs((now - self._last[0]) - (steady - self._last[1])) > _JUMP:
            self.set_at = now
        self._last = (now, steady)


class Watchdog(BackgroundLoop):
    def __init__(self, context: Trees) -> None:
        super().__init__(context, "watchdog")
        self._warnings = context.live.warnings
        self._seen: dict[int, _JournalProgress] = {}
        self._predictions: dict[int, Prediction] = {}
        self._clock = ClockWatch(context.clock)

    def _repeat(self) -> None:
        rest = 0.0
        while not self._stopping.wait(rest):
            wanted = self.context.user.liveness
            began = self.context.clock()
            self._attempt("watchdog: check", self.check if wanted.watch else lambda: self._forget(()))
            took = max(0.0, self.context.clock() - began)
            rest = max(wanted.every, _SHARE * took) if wanted.watch else _OFF

    def check(self) -> None:
        """Check all active runs once."""
        self._clock.look(time.monotonic())
        with self.context.store.read() as tx:
            # Advisors and reviewers change nothing and have a time limit of their own.
            active = {run.id: run for run in runs.active(tx) if run.part is RolePart.BUILD}
            taken = watchdog.interventions(tx, active)
            new = [id for id in active if id not in self._seen]
            known = watchdog.observations(tx, new)
        self._forget(active)
        for id in new:
            self._meet(active[id], known.get(id))
        if not self._seen:
            return
        processes = load.table()
        thinking = activity.open_requests(GatewayFolder(self.context.data.gateway))
        for id, seen in self._seen.items():
            seen.run = active[id]
            try:
                self._check(seen, taken.get(id, ()), processes, thinking)
            except (LegionError, OSError) as trouble:
                log.warning("watchdog: run %s could not be checked: %s", seen.run.name, trouble)

    def _forget(self, active: Mapping[int, Run] | tuple[()]) -> None:
        for gone in [id for id in self._seen if id not in active]:
            del self._seen[gone]
        self._warnings.remove(id for id in self._warnings.current if id not in active)
        busy = {seen.run.project for seen in self._seen.values()}
        for idle in set(self._predictions) - busy:
            self._predictions.pop(idle).forget()

    def _meet(self, run: Run, known: Observation | None) -> None:
        folder = self.context.data.runs / run.name
        try:
            spec = read_spec(folder)
        except RunnerError:
            # Its worktree is still being made.
            return
        watch = known or Observation(run=run.id)
        journal = JournalReader(folder)
        self._seen[run.id] = _JournalProgress(
            run=run, folder=folder, journal=journal, spec=spec, watch=watch, kept=known, thought_at=self.context.clock()
        )

    def _check(
        self,
        seen: _JournalProgress,
        taken: tuple[Intervention, ...],
        processes: Table | None,
        thinking: Mapping[str, float] | None,
    ) -> None:
        wanted = self.context.project(seen.run.project).config.liveness
        # In a terminal a person may think for as long as they want.
        if RunFolder(seen.folder).result.exists() or not wanted.on or seen.spec.program.terminal:
            self._warnings.remove([seen.run.id])
            return
        limits = WatchdogLimits(
            repeats=wanted.repeats, hang=wanted.hang, program=wanted.program, silence=wanted.silence
        )
        now = self.context.clock()
        _read_journal(seen, now)
        if seen.root is None:
            return
        # Processes and files of a run on a machine are not seen from here: they are unknown, and its journal counts.
        here = not seen.run.machine
        if here and not self._measure(seen, processes, now):
            return
        if here and seen.talks and diagnosis.suspected(seen.activity, taken):
            self._compare_files(seen, now)
        self._keep(seen)
        if taken and taken[-1].taken_at is None:
            take(self.context, seen.run, taken[-1], after=seen.activity.last_number, again=True)
            return
        by_gateway = seen.run.access not in ("", OwnLogin.label, OWN_ACCOUNT)
        thinks = seen.run.name in thinking if by_gateway and thinking is not None else None
        if thinks is not False:
            seen.thought_at = now
        facts = self._facts(seen, taken, thinks)
        state = diagnosis.judge(facts, limits, now)
        self._warn(seen.run, state, facts, limits)
        action = diagnosis.next_step(state, facts, limits)
        if action is not None and self._wanted(seen.run):
            intervene(self.context, seen.run, state, action, facts, now)

    def _warn(self, run: Run, state: State, facts: RunFacts, limits: WatchdogLimits) -> None:
        """Until a step has helped, the board shows why it was taken."""
        unsolved = facts.taken[-1:] if diagnosis.standing(facts, limits) is not None else ()
        warning = state.summary or next((step.sign for step in unsolved), "")
        if warning:
            self._warnings.update({run.id: warning})
        else:
            self._warnings.remove([run.id])

    def _measure(self, seen: _JournalProgress, processes: Table | None, now: float) -> bool:
        """Measure its processes. False where its runner is gone: the job that waits for the run handles that."""
        assert seen.root is not None, "a run is measured once its program has started"
        if processes is not None and not load.lives(seen.root, processes):
            if not launch.is_held(seen.folder):
                return False
            seen.dead_since = seen.dead_since if seen.dead_since is not None else now
            return True
        seen.dead_since = None
        sandboxed = seen.spec.sandbox is not None
        used = None
        if processes is not None:
            used = load.load(seen.root, processes, walled=sandboxed, tools_only=seen.talks)
        seen.processes = None if used is None else used.count
        seen.watch = felt(seen.watch, used, now)
        return True

    def _compare_files(self, seen: _JournalProgress, now: float) -> None:
        """Only for a run whose calls look like a loop: if its files change, it may make progress all the same."""
        if seen.watch.tree and seen.activity.last_number <= seen.watch.tree_since:
            return
        change = self._open_change(seen.run)
        if change is None:
            return
        number = seen.activity.last_number
        tree = self._prediction(seen.run.project).tree(change)
        if tree is not None:
            seen.watch = looked(seen.watch, tree, number, now)

    def _open_change(self, run: Run) -> OpenChange | None:
        project = self.context.project(run.project)
        with self.context.store.read() as tx:
            base = tickets.get(tx, run.ticket).base if run.ticket is not None else None
            if run.agent is not None:
                base = agents.numbered(tx, run.agent).base
        if base is None:
            return None
        index = project.worktrees.index(run.seat)
        tree = live_tree(self.context, project, project.worktrees.path(run.seat))
        return OpenChange(id=run.id, base=base, tree=tree, index=index)

    def _prediction(self, project_id: int) -> Prediction:
        if project_id not in self._predictions:
            project = self.context.project(project_id)
            self._predictions[project_id] = Prediction(project.hub, project.folder / "liveness")
            # An index of an earlier daemon may name objects that no longer exist.
            self._predictions[project_id].forget()
        return self._predictions[project_id]

    def _keep(self, seen: _JournalProgress) -> None:
        if not worth_keeping(seen.kept, seen.watch):
            return
        with self.context.store.write() as tx:
            watchdog.keep(tx, seen.watch)
        seen.kept = seen.watch

    def _facts(self, seen: _JournalProgress, taken: tuple[Intervention, ...], thinks: bool | None) -> RunFacts:
        return RunFacts(
            course=seen.activity,
            talks=seen.talks,
            started_at=seen.run.started_at,
            dead_since=seen.dead_since,
            thinks=thinks,
            thought_at=seen.thought_at,
            processes=seen.processes,
            idle_since=seen.watch.idle_since,
            tree_since=seen.watch.known_tree_since,
            tree_at=seen.watch.tree_at,
            clock_set_at=self._clock.set_at,
            taken=taken,
        )

    def _wanted(self, run: Run) -> bool:
        """False if a person has stopped it meanwhile."""
        with self.context.store.read() as tx:
            if runs.get(tx, run.id).ended_at is not None:
                return False
            return run.ticket is None or tickets.get(tx, run.ticket).state is TicketState.WORKING


def _read_journal(seen: _JournalProgress, now: float) -> None:
    events = seen.journal.read_on()
    if not events:
        return
    if seen.root is None:
        # A check may fall between the lines that name its processes.
        seen.beginning += events
        seen.root = load.root_of(seen.beginning)
    for event in events:
        # The clock of a machine may show any time, so an event counts from its arrival.
        seen.reader.add(_fact(event, now if seen.run.machine else event.time))
    seen.activity = seen.reader.activity()


def _fact(event: JournalEvent, time: float) -> JournalFact:
    """Without the long texts."""
    facts = {name: event.facts[name] for name in USED_FACTS if name in event.facts}
    return JournalFact(number=event.number, time=time, kind=event.kind, facts=facts)


def intervene(context: Board, run: Run, state: State, action: WatchdogStep, facts: RunFacts, now: float) -> None:
    """Store the step, then take it."""
    wanted = Intervention(
        run=run.id,
        number=len(facts.taken) + 1,
        action=action,
        rule=RULES[type(state)],
        sign=state.summary,
        why=why(state, now),
        advice=advice(action, state, now),
        message=str(uuid.uuid4()),
        after=facts.course.last_number,
        at=now,
    )
    with context.store.write() as tx:
        watchdog.note(tx, run, wanted)
    context.live.warnings.update({run.id: wanted.sign})
    log.info("watchdog: run %s: %s, because %s", run.name, action.value, wanted.why)
    crash.reach(Point.LIVE_AFTER_NOTE)
    take(context, run, wanted, after=wanted.after)


def take(context: Board, run: Run, step: Intervention, *, after: int, again: bool = False) -> None:
    """Take it once: if it may have been taken before, the journal shows that."""
    folder = context.data.runs / run.name
    try:
        if not (again and _was_delivered(folder, step)):
            match step.action:
                case WatchdogStep.NUDGE:
                    launch.tell(folder, step.message, step.advice)
                case WatchdogStep.INTERRUPT:
                    launch.interrupt(folder, step.message, step.advice)
                case WatchdogStep.END:
                    launch.stop(folder)
    except RunnerError as silent:
        # The next check takes it, unless the runner received it after all.
        log.warning("watchdog: run %s does not answer: %s", run.name, silent.message)
        return
    crash.reach(Point.LIVE_AFTER_STEP)
    with context.store.write() as tx:
        watchdog.taken(tx, step, after=after)


def _was_delivered(folder: Path, step: Intervention) -> bool:
    return any(
        event.kind == "told" and event.facts.get("id") == step.message for event in JournalReader(folder).read_on()
    )


def describe_run(context: Board, run: Run, steps: tuple[Intervention, ...], now: float, *, working: str) -> str:
    """For the board: `loops: 6 times ..., nudged 2 min ago`. `working` is the text for a run that makes progress."""
    words = context.live.warnings.get(run.id) or working
    if not steps:
        return words
    return f"{words}, {diagnosis.DONE[steps[-1].action]} {lasted(max(0.0, now - steps[-1].at))} ago"


# Texts for an agent that makes no progress: what was seen, why more of it will not help, and what may.

_ANOTHER_WAY = (
    "Stop here and think: what did you expect, what did you see instead, and what have you not looked at yet? Look at "
    "that, then take another way. If you wait for something, wait for it in one call with a limit. If you see no way "
    "left, end with one line: STUCK: and the reason."
)
_INTERRUPTED = "You were interrupted by Legion, which checks whether work makes progress. "


def why(state: State, now: float) -> str:
    """For people; starts in lower case and ends without a full stop."""
    match state:
        case Looping(call=call, times=times, files_change=True):
            return f"{call} failed in the same way {times} times, whatever was changed"
        case Looping(call=call, times=times):
            return f"it made the same call {times} times with the same result: {call}"
        case HangingTool(call="", since=since):
            return f"its program has used no processor and moved no byte for {lasted(now - since)}"
        case HangingTool(call=call, since=since):
            return f"{call} has used no processor and moved no byte for {lasted(now - since)}"
        case Silent(since=since):
            return f"it has had no call, no working process and no request at its model for {lasted(now - since)}"
        case Dead():
            return "its program has died and left its runner waiting"
        case Progress() | WaitingForPermission():
            return state.summary


def advice(action: WatchdogStep, state: State, now: float) -> str:
    """The message to the agent; at the end of a run, feedback for the next attempt."""
    seen = f"{_capital(why(state, now))}."
    if action is WatchdogStep.END:
        return f"The run was ended because it made no progress. {seen}{_instead(state)} Do not try the same way again."
    first = _INTERRUPTED if action is WatchdogStep.INTERRUPT else ""
    match state:
        case HangingTool():
            return f"{first}{seen}{_instead(state)}"
        case Silent():
            return f"{first}{seen} If you are done, say so and end; otherwise continue with the next step."
        case _:
            return f"{first}{seen} Doing it again will not change that. {_ANOTHER_WAY}"


def _instead(state: State) -> str:
    if not isinstance(state, HangingTool):
        return ""
    return (
        " It probably waits for input, for a lock, or for something that never comes. Do not start it like that again: "
        "give it its input, or a limit (`timeout 60 ...`), or find out first what it waits for."
    )


def lasted(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
