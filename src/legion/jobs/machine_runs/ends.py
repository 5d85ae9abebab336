"""The end of a run on a machine: its report is accepted once, and what comes after the lease is kept as late work."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from legion.domain.errors import BadInput
from legion.domain.events import Event, EventKind
from legion.domain.machines.machine import HeadLeases, Machine, MachineState, PlacedRun, PlacementState
from legion.jobs.context import Context
from legion.jobs.loop import report
from legion.jobs.machine_runs import fence, packs
from legion.jobs.machine_runs.arrivals import drop_pack
from legion.jobs.machines.travel import SAVED, SNAPSHOT
from legion.jobs.trees import Trees
from legion.jobs.workspace import quota
from legion.runner.spec import RunFolder, RunnerError, parse_result
from legion.store import events
from legion.store.work import machines, runs
from legion.system import crash, files, loops
from legion.system.crash import Point

_MOST_FACTS = 1 << 20


def accept(
    context: Context,
    machine: Machine,
    *,
    run: str,
    generation: int,
    result: Mapping[str, Any] | None,
    saved: Mapping[str, Any] | None,
    failed: str,
    unsaved: str = "",
    setup_failed: bool = False,
    over_quota: Sequence[int] = (),
    tree: str = "",
) -> None:
    """Record how the run ended. Repeating an accepted report changes nothing. Raises StaleRun, BadInput."""
    with context.store.read() as tx:
        placed = fence.own(tx, machine, run, generation)
        if placed.state is PlacementState.ENDED:
            return
        fence.current(tx, machine, run, generation)
    content = _result(run, result)
    facts = {**(saved or {}), "failed": failed, "could_not_save": unsaved, "setup_failed": setup_failed, "tree": tree}
    explained = json.dumps(facts)
    if len(explained) > _MOST_FACTS:
        raise BadInput(f"The report about run {run} is too long: at most {_MOST_FACTS >> 20} MB.")
    if saved is not None:
        packs.accept_saved(context, placed, str(saved.get("commit", "")))
    folder = context.data.runs / run
    crash.reach(Point.MACHINE_END_BEFORE_ROW)
    with context.store.write() as tx:
        # In this transaction: the lease may have ended meanwhile, and both ends are final.
        fence.current(tx, machine, run, generation)
        files.write_atomic(folder / SAVED, explained)
        if content is not None:
            files.write_atomic(RunFolder(folder).result, content)
        if len(over_quota) == 2:
            quota.mark(context, run, held=over_quota[0], limit=over_quota[1])
        machines.move(tx, placed.run, PlacementState.ENDED)
        # A run that filled the disk is to blame itself.
        if ((failed and not setup_failed) or unsaved) and not over_quota:
            machines.note_loss(tx, placed)
        else:
            machines.note_end(tx, machine.id)
    crash.reach(Point.MACHINE_END_AFTER_ROW)
    drop_pack(context, run)
    context.machines.bells.ring(run)


def accept_late(context: Trees, machine: Machine, *, run: str, generation: int, commit: str) -> None:
    """Keep what a cut-off machine had in its tree. It never lands by itself. Repeating it changes nothing."""
    with context.store.read() as tx:
        placed = fence.late(tx, machine, run, generation)
    name = late_ref(placed)
    hub = context.hub(placed.project)
    if hub.kept(name).get(name) != commit:
        packs.accept(context, placed, commit, keep_as=name)
    crash.reach(Point.MACHINE_LATE_AFTER_KEEP)
    with context.store.write() as tx:
        ticket = runs.get(tx, placed.run).ticket
        if ticket is not None and any(_is_about(one, placed, commit) for one in events.of_ticket(tx, ticket)):
            return
        why = (
            f"machine {machine.name} was cut off in run {placed.run} and has sent what was in its tree: it is kept as "
            f"refs/legion/{name} in the hub and lands only if you take it from there"
        )
        data = {"why": why, "run": placed.run, "commit": commit, "machine": machine.name}
        tx.record(EventKind.WARNING, project=placed.project, ticket=ticket, data=data)


def _is_about(event: Event, placed: PlacedRun, commit: str) -> bool:
    known = (event.data.get("run"), event.data.get("commit"))
    return event.kind is EventKind.WARNING and known == (placed.run, commit)


def accept_snapshot(context: Trees, machine: Machine, *, run: str, generation: int, commit: str) -> None:
    """Keep what a working run has in its tree now: it starts again from there if its machine is lost."""
    with context.store.read() as tx:
        placed = fence.current(tx, machine, run, generation)
    packs.accept_saved(context, placed, commit)
    files.write_atomic(context.data.runs / run / SNAPSHOT, json.dumps({"commit": commit}))
    drop_pack(context, run)


def late_ref(placed: PlacedRun) -> str:
    """Below refs/legion/ in the hub."""
    return f"late/{placed.name}/{placed.generation}"


def _result(run: str, facts: Mapping[str, Any] | None) -> str | None:
    """The runner's result as the head stores it. Raises BadInput where it is none of this run."""
    if facts is None:
        return None
    try:
        known = parse_result(facts)
    except (RunnerError, KeyError, ValueError, TypeError) as wrong:
        raise BadInput(f"The result of run {run} cannot be read ({wrong}): update Legion on this machine.") from wrong
    if known.run != run:
        raise BadInput(f"This is the result of run {known.run}, not of {run}.")
    return json.dumps(dict(facts), indent=1)


# Ends the leases of silent machines: their runs are given away, and nothing they send later counts.

log = logging.getLogger(__name__)


def _mark(placed: PlacedRun) -> tuple[bool, int]:
    """Changes when the run is taken, and with each beat that names it."""
    return placed.taken, placed.beats


class Reaper:
    """A thread of the daemon. `clock` is monotonic: neither a set clock nor a sleep of the head ends a lease."""

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        self.context = context
        self._clock = clock
        self._leases = HeadLeases(context.machines.times)
        self._stopping = threading.Event()
        self._thread = loops.lasting(self._watch, name="leases", stopped=self._stopping.wait)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(self.context.machines.times.beat / 2):
            try:
                self.look()
            except Exception as trouble:  # a head that no longer looks would wait for lost machines for ever
                log.error("leases: check failed, will retry: %s", trouble)
                report(self.context, "leases", trouble)

    def look(self) -> None:
        """One look at all machines with runs."""
        with self.context.store.read() as tx:
            open_runs = machines.open_on(tx)
            present = {one.id: one for one in machines.all(tx)}
        now = self._clock()
        self._leases.observe({one.run: _mark(one) for one in open_runs}, now)
        lapsed = self._leases.lapsed(now)
        for placed in open_runs:
            machine = present.get(placed.machine)
            if placed.run in lapsed:
                silent = f"{self.context.machines.times.reap:g} s"
                self._lapse(placed, f"its machine was not heard for {silent}")
            elif not placed.taken and (machine is None or machine.state is not MachineState.ACTIVE):
                self._lapse(placed, "its machine takes no new runs")

    def _lapse(self, placed: PlacedRun, why: str) -> None:
        with self.context.store.write() as tx:
            # In this transaction: the machine may have been heard, or have taken the run, since the look.
            now = machines.placed(tx, placed.run)
            if now is None or _mark(now) != _mark(placed):
                return
            if not machines.move(tx, placed.run, PlacementState.LAPSED, why):
                return
            machines.note_loss(tx, now)
        log.warning("run %s is given away: %s", placed.name, why)
        self.context.machines.bells.ring(placed.name)
