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

from legion.domain import course, liveness, watching
from legion.domain.course import Course, Happening
from legion.domain.errors import LegionError
from legion.domain.liveness import RULES, Action, Facts, Help, Patience, State
from legion.domain.runs import Run
from legion.domain.teams import Part
from legion.domain.tickets import State as TicketState
from legion.domain.watching import Watch
from legion.drivers.known import DriverName
from legion.gateway import activity
from legion.gateway.folder import GatewayFolder
from legion.git.prediction import InWork, Prediction
from legion.jobs import help_words
from legion.jobs.world import World
from legion.runner import launch, load
from legion.runner.journal import JournalEvent, JournalReader
from legion.runner.load import Root, Table
from legion.runner.spec import RunFolder, RunnerError, Spec, read_spec
from legion.store import agents, runs, tickets
from legion.store import liveness as store
from legion.system import crash
from legion.system.crash import Point

log = logging.getLogger(__name__)

_REST = 1.0
"""Seconds until the settings are read again where nobody wants to be looked at."""
_ENDPOINT = "ANTHROPIC_BASE_URL"
"""Set where the gateway is its way to a model, and so can tell whether that is being asked."""
_SHARE = 10
"""A look that took a second is followed by so many of rest."""


@dataclass(kw_only=True)
class _Seen:
    """What was read of a run so far, to read on from there. Nothing in it that could not be read again."""

    run: Run
    folder: Path
    journal: JournalReader
    spec: Spec
    happenings: list[Happening] = field(default_factory=list)
    course: Course = field(default_factory=Course)
    beginning: list[JournalEvent] = field(default_factory=list)
    """What was read until its program had started."""
    root: Root | None = None
    watch: Watch
    kept: Watch | None
    processes: int | None = None
    dead_since: float | None = None
    thought_at: float
    """When its model was last seen to be asked; a new daemon begins anew."""

    @property
    def talks(self) -> bool:
        return self.spec.driver is not DriverName.COMMAND


class Watchman:
    def __init__(self, world: World) -> None:
        self.world = world
        self._stopping = threading.Event()
        self._seen: dict[int, _Seen] = {}
        self._predictions: dict[int, Prediction] = {}
        self._thread = threading.Thread(target=self._watch, name="watchman", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _watch(self) -> None:
        rest = 0.0
        while not self._stopping.wait(rest):
            wanted = self.world.user.liveness
            began = self.world.clock()
            try:
                if wanted.watch:
                    self.look()
                else:
                    self._forget(())
            except (LegionError, OSError) as trouble:
                log.warning("nobody looks whether runs get on at the moment: %s", trouble)
            took = max(0.0, self.world.clock() - began)
            rest = max(wanted.every, _SHARE * took) if wanted.watch else _REST

    def look(self) -> None:
        """One round over all runs at work."""
        with self.world.store.read() as tx:
            # Who advises or reads changes nothing, and has its limit of time.
            active = {run.id: run for run in runs.active(tx) if run.part is Part.BUILD}
            taken = store.helps(tx, active)
            new = [id for id in active if id not in self._seen]
            known = store.watches(tx, new)
        self._forget(active)
        for id in new:
            self._meet(active[id], known.get(id))
        if not self._seen:
            return
        everybody = load.table()
        thinking = activity.open_requests(GatewayFolder(self.world.data.gateway))
        for id, seen in self._seen.items():
            seen.run = active[id]
            try:
                self._look(seen, taken.get(id, ()), everybody, thinking)
            except (LegionError, OSError) as trouble:
                log.warning("nobody knows whether run %s gets on: %s", seen.run.name, trouble)

    def _forget(self, active: Mapping[int, Run] | tuple[()]) -> None:
        for gone in [id for id in self._seen if id not in active]:
            del self._seen[gone]
        for gone in [id for id in self.world.signs if id not in active]:
            self.world.signs.pop(gone, None)
        busy = {seen.run.project for seen in self._seen.values()}
        for idle in set(self._predictions) - busy:
            self._predictions.pop(idle).forget()

    def _meet(self, run: Run, known: Watch | None) -> None:
        folder = self.world.data.runs / run.name
        try:
            spec = read_spec(folder)
        except RunnerError:
            # Its tree is still being made.
            return
        watch = known or Watch(run=run.id)
        journal = JournalReader(folder)
        self._seen[run.id] = _Seen(
            run=run,
            folder=folder,
            journal=journal,
            spec=spec,
            watch=watch,
            kept=known,
            thought_at=self.world.clock(),
        )

    def _look(
        self, seen: _Seen, taken: tuple[Help, ...], everybody: Table | None, thinking: Mapping[str, float] | None
    ) -> None:
        wanted = self.world.workshop(seen.run.project).config.liveness
        if RunFolder(seen.folder).result.exists() or not wanted.on:
            self.world.signs.pop(seen.run.id, None)
            return
        patience = Patience(repeats=wanted.repeats, hang=wanted.hang, program=wanted.program, silence=wanted.silence)
        now = self.world.clock()
        self._read_on(seen)
        if seen.root is None:
            return
        if not self._measure(seen, everybody, now):
            return
        if seen.talks and liveness.suspected(seen.course, taken):
            self._look_at_files(seen, now)
        self._keep(seen)
        if taken and taken[-1].taken_at is None:
            take(self.world, seen.run, taken[-1], after=seen.course.last_number, again=True)
            return
        thinks = seen.run.name in thinking if _ENDPOINT in seen.spec.program.env and thinking is not None else None
        if thinks is not False:
            seen.thought_at = now
        facts = self._facts(seen, taken, thinks)
        state = liveness.judge(facts, patience, now)
        self._show(seen.run, state, facts, patience)
        action = liveness.next_step(state, facts, patience)
        if action is not None and self._wanted(seen.run):
            step_in(self.world, seen.run, state, action, facts, now)

    def _show(self, run: Run, state: State, facts: Facts, patience: Patience) -> None:
        """Until a step has helped, the board says why it was taken."""
        helped = facts.taken[-1:] if liveness.standing(facts, patience) is not None else ()
        words = state.words or next((step.sign for step in helped), "")
        if words:
            self.world.signs[run.id] = words
        else:
            self.world.signs.pop(run.id, None)

    def _read_on(self, seen: _Seen) -> None:
        events = seen.journal.read_on()
        if not events:
            return
        if seen.root is None:
            # A look may fall between the lines that name its processes.
            seen.beginning += events
            seen.root = load.root_of(seen.beginning)
        seen.happenings += [_happening(one) for one in events]
        seen.course = course.read(seen.happenings)

    def _measure(self, seen: _Seen, everybody: Table | None, now: float) -> bool:
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
        seen.watch = watching.felt(seen.watch, used, now)
        return True

    def _look_at_files(self, seen: _Seen, now: float) -> None:
        """Only where its calls alone make it look as if it went round in circles."""
        if seen.watch.tree and seen.course.last_number <= seen.watch.tree_since:
            return
        change = self._in_work(seen.run)
        if change is None:
            return
        number = seen.course.last_number
        tree = self._prediction(seen.run.project).tree(change)
        if tree is not None:
            seen.watch = watching.looked(seen.watch, tree, number, now)

    def _in_work(self, run: Run) -> InWork | None:
        shop = self.world.workshop(run.project)
        with self.world.store.read() as tx:
            base = tickets.get(tx, run.ticket).base if run.ticket is not None else None
            if run.agent is not None:
                base = agents.numbered(tx, run.agent).base
        if base is None:
            return None
        index = shop.worktrees.index(run.seat)
        return InWork(id=run.id, base=base, tree=shop.worktrees.path(run.seat), index=index)

    def _prediction(self, project: int) -> Prediction:
        if project not in self._predictions:
            shop = self.world.workshop(project)
            self._predictions[project] = Prediction(shop.hub, shop.folder / "liveness")
            # Of the daemon before us; its index may name what is not there any more.
            self._predictions[project].forget()
        return self._predictions[project]

    def _keep(self, seen: _Seen) -> None:
        if not watching.worth_keeping(seen.kept, seen.watch):
            return
        with self.world.store.write() as tx:
            store.keep(tx, seen.watch)
        seen.kept = seen.watch

    def _facts(self, seen: _Seen, taken: tuple[Help, ...], thinks: bool | None) -> Facts:
        return Facts(
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
        with self.world.store.read() as tx:
            if runs.get(tx, run.id).ended_at is not None:
                return False
            return run.ticket is None or tickets.get(tx, run.ticket).state is TicketState.WORKING


def _happening(event: JournalEvent) -> Happening:
    """Without the long texts, since all of a run are kept."""
    facts = {name: event.facts[name] for name in course.TOLD_BY if name in event.facts}
    return Happening(number=event.number, time=event.time, kind=event.kind, facts=facts)


def step_in(world: World, run: Run, state: State, action: Action, facts: Facts, now: float) -> None:
    """Write the step down, then take it."""
    wanted = Help(
        run=run.id,
        number=len(facts.taken) + 1,
        action=action,
        rule=RULES[type(state)],
        sign=state.words,
        why=help_words.why(state, now),
        advice=help_words.words(action, state, now),
        message=str(uuid.uuid4()),
        after=facts.course.last_number,
        at=now,
    )
    with world.store.write() as tx:
        store.note(tx, run, wanted)
    world.signs[run.id] = wanted.sign
    log.info("run %s: %s, because %s", run.name, action.value, wanted.why)
    crash.reach(Point.LIVE_AFTER_NOTE)
    take(world, run, wanted, after=wanted.after)


def take(world: World, run: Run, step: Help, *, after: int, again: bool = False) -> None:
    """Once: where somebody before us may have taken it, the journal says so."""
    folder = world.data.runs / run.name
    try:
        if not (again and _was_told(folder, step)):
            match step.action:
                case Action.NUDGE:
                    launch.tell(folder, step.message, step.advice)
                case Action.INTERRUPT:
                    launch.interrupt(folder, step.message, step.advice)
                case Action.END:
                    launch.stop(folder)
    except RunnerError as silent:
        # The next look takes it, if the runner has not heard it after all.
        log.warning("run %s could not be reached: %s", run.name, silent.message)
        return
    crash.reach(Point.LIVE_AFTER_STEP)
    with world.store.write() as tx:
        store.taken(tx, step, after=after)


def _was_told(folder: Path, step: Help) -> bool:
    return any(
        event.kind == "told" and event.facts.get("id") == step.message for event in JournalReader(folder).read_on()
    )


def doing(world: World, run: Run, steps: tuple[Help, ...], now: float, *, working: str) -> str:
    """For the board: `loops: 6 times ..., nudged 2 min ago`. `working` is said of one that gets on."""
    words = world.signs.get(run.id) or working
    if not steps:
        return words
    return f"{words}, {liveness.DONE[steps[-1].action]} {help_words.lasted(max(0.0, now - steps[-1].at))} ago"
