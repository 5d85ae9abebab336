"""Answers the beats of machines: gives them jobs, requests to their runs, and the runs that they no longer have."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from legion.domain.machines.machine import Machine, MachineState, PlacedRun, PlacementState, RunCommand
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.machine_runs import placements
from legion.jobs.machines.engine import EngineUnavailable, PlacedJob, RunKey
from legion.jobs.machines.long_polls import BeatFacts
from legion.jobs.machines.travel import FILE
from legion.store.board import projects
from legion.store.database.transactions import ReadTransaction
from legion.store.work import machines
from legion.system import crash
from legion.system.crash import Point

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class BeatAnswer:
    jobs: tuple[dict[str, Any], ...]
    stop: tuple[RunKey, ...]
    commands: tuple[RunCommand, ...]
    targets: Mapping[int, str]
    """Where they have moved to, of projects that the machine has worked for."""


def note(context: Context, machine: Machine, facts: BeatFacts) -> None:
    """The machine is alive. This renews the leases of the runs that it names."""
    with context.store.write() as tx:
        machines.beat(
            tx,
            machine.id,
            boot=facts.boot,
            version=facts.version,
            protocol=facts.protocol,
            mirrors=facts.mirrors,
            toolchain=facts.toolchain,
            disk_free_mb=facts.disk_free_mb,
            disk_floor_mb=facts.disk_floor_mb,
        )
        machines.named(tx, machine.id, {run for run, _ in facts.running})
        machines.acknowledge(tx, machine.id, facts.acks)
        is_full = facts.disk_free_mb is not None and facts.disk_free_mb < facts.disk_floor_mb
        if is_full is not machine.is_full:
            machines.note_disk(tx, machine, is_full=is_full)
        if context.machines.beats.is_shared(machine.id, facts.worker):
            machines.note_copy(tx, machine)
        if _fits_again(context, machine, facts, tx.now):
            # A ticket may be parked until then.
            tx.tell()


def _fits_again(context: Context, machine: Machine, facts: BeatFacts, now: float) -> bool:
    """Whether it may take runs or checks that it did not take until now: it was silent, or was updated."""
    silent = machine.heard_at is None or now - machine.heard_at >= context.machines.times.quiet
    return silent or machine.protocol != facts.protocol or facts.toolchain not in (None, machine.toolchain)


def answer(context: Context, machine: Machine, facts: BeatFacts) -> BeatAnswer:
    """What the machine should do now. Asking again is safe: a job whose answer was lost is sent again to the process
    that took it. To no other one: that may be a copy of the machine, and the first may still work.
    """
    taken = _take(context, machine, facts) if facts.free > 0 and machine.state is MachineState.ACTIVE else ()
    with context.store.read() as tx:
        mine = {(one.name, one.generation): one for one in machines.open_on(tx, machine.id)}
        commands = machines.commands(tx, machine.id)
        targets = _moved_targets(tx, machine, facts)
        given_away = [
            key
            for key in facts.running
            if not placements.is_taken(mine.get(key)) and not placements.is_reported(tx, machine, key)
        ]
    taken_here = {key: one for key, one in mine.items() if placements.is_taken(one) and one.taken_by == facts.worker}
    lost = [one for key, one in taken_here.items() if key not in facts.running]
    names = dict.fromkeys((*(one.name for one in taken), *(one.name for one in lost)))
    return BeatAnswer(
        jobs=tuple(job for name in names if (job := _job(context, name)) is not None),
        stop=tuple(sorted(given_away)),
        commands=tuple(one for one in commands if one.id not in facts.acks),
        targets=targets,
    )


def _moved_targets(tx: ReadTransaction, machine: Machine, facts: BeatFacts) -> dict[int, str]:
    if not facts.targets or machine.state is not MachineState.ACTIVE:
        return {}
    return {
        one.id: one.target
        for one in projects.all(tx)
        if facts.targets.get(one.id, one.target) != one.target and machines.was_given(tx, machine.id, one.id)
    }


def _take(context: Context, machine: Machine, facts: BeatFacts) -> Sequence[PlacedRun]:
    try:
        with context.store.read() as tx:
            room = min(facts.free, machine.slots - placements.held(tx, machine, facts))
        offered = placements.engine_of(context).take(machine.name, max(room, 0), running=facts.running)
    except EngineUnavailable as down:
        log.warning("machine %s gets no jobs for now: %s", machine.name, down)
        return ()
    crash.reach(Point.MACHINE_TAKE_BEFORE_ROW)
    taken, over = _mark_taken(context, machine, offered, facts.worker) if offered else ((), ())
    crash.reach(Point.MACHINE_TAKE_AFTER_ROW)
    for job in over:
        # The job of the run itself does the same once more.
        with contextlib.suppress(EngineUnavailable):
            placements.engine_of(context).finish(job.run, job.generation)
    return taken


def _mark_taken(
    context: Board, machine: Machine, offered: Sequence[PlacedJob], worker: str
) -> tuple[list[PlacedRun], list[PlacedJob]]:
    """Those that are this machine's now, and those whose run has ended or lapsed since they were queued."""
    taken: list[PlacedRun] = []
    over: list[PlacedJob] = []
    with context.store.write() as tx:
        for job in offered:
            placed = machines.placed_as(tx, job.run)
            if placed is None or not placed.open or placed.generation != job.generation or placed.machine != machine.id:
                over.append(job)
            elif placed.state is PlacementState.PLACED and machines.take(tx, placed.run, worker):
                taken.append(placed)
    return taken, over


def _job(context: Board, run: str) -> dict[str, Any] | None:
    """None where the head's own folder of the run is gone: its lease will end."""
    try:
        job: dict[str, Any] = json.loads((context.data.runs / run / FILE).read_bytes())
    except FileNotFoundError:
        log.error("run %s has no %s on the head, so no machine gets it", run, FILE)
        return None
    return job
