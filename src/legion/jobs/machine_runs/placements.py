"""Gives a run to its machine: writes what has to travel, and queues the run there. Each step may be repeated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from legion.config.sections.limits import hours_of
from legion.domain.errors import LegionError
from legion.domain.machines.machine import LeaseTimes, Machine, PlacedRun, PlacementState, condition, may_grant
from legion.domain.machines.placement import PlaceState, RunPlace
from legion.domain.runs import Run
from legion.domain.scheduling.job_places import READS, TAKES_A_SLOT, JobKind
from legion.drivers import Program
from legion.jobs.agent import model_run
from legion.jobs.agent.model_run import PreparedInput
from legion.jobs.agent.preparation import Workplace
from legion.jobs.context import Context
from legion.jobs.machines.engine import EngineUnavailable, JobEngine, PlacedJob, RunKey
from legion.jobs.machines.long_polls import BeatFacts
from legion.jobs.machines.travel import FILE, MachineJob, TravellingProject
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import quota
from legion.runner.spec import RunFolder, RunSpec, write_spec
from legion.store.database.transactions import ReadTransaction
from legion.store.work import machines, runs
from legion.system import crash, files
from legion.system.crash import Point

_NOWHERE = Path("/")


class QueueDown(LegionError):
    """The job backs off and tries again."""


def place(context: Context, this_run: Run, make: Callable[[], MachineJob]) -> PlacedRun | None:
    """None where the machine was removed since it was chosen."""
    folder = context.data.runs / this_run.name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # That it is there counts, and the file after it is durable.
    files.write_atomic(RunFolder(folder).elsewhere, json.dumps({"machine": this_run.machine}), durable=False)
    job = make()
    write_spec(folder, _description(job))
    files.write_atomic(folder / FILE, json.dumps(job.to_json()))
    crash.reach(Point.MACHINE_PLACE_BEFORE_ROW)
    return _grant_or_place(context, this_run, job)


def _grant_or_place(context: Context, this_run: Run, job: MachineJob) -> PlacedRun | None:
    """A machine whose beat waits here has the run as soon as it is placed: the row names the process that gets it."""
    with context.store.read() as reading:
        machine = machines.find(reading, this_run.machine)
    if machine is None:
        return None
    with context.machines.beats.reserved(machine.id) as beat:
        with context.store.write() as tx:
            runs.note_driver(tx, this_run.id, job.driver_name or job.driver)
            machine = machines.find(tx, this_run.machine)
            if machine is None:
                return None
            worker = beat.facts.worker if beat is not None and _may_grant(tx, machine, beat.facts) else None
            placed = machines.place(tx, this_run, machine, worker=worker)
        crash.reach(Point.MACHINE_PLACE_AFTER_ROW)
        if beat is not None and worker is not None:
            beat.give(job.to_json())
    return placed


def _may_grant(tx: ReadTransaction, machine: Machine, facts: BeatFacts) -> bool:
    queued = sum(one.state is PlacementState.PLACED for one in machines.open_on(tx, machine.id))
    return may_grant(machine, free=facts.free, held=held(tx, machine, facts), queued=queued)


def queue(context: Context, this_run: Run, placed: PlacedRun) -> None:
    """Repeated by each daemon that adopts the run: the last one may have died before it."""
    job = PlacedJob(
        run=this_run.name, generation=this_run.generation, machine=this_run.machine, project=this_run.project
    )
    try:
        engine_of(context).place(job, taken=placed.taken)
    except EngineUnavailable as down:
        raise QueueDown(f"{down}; start Postgres again.") from down
    crash.reach(Point.MACHINE_PLACE_AFTER_QUEUE)
    # The queue is not in the store, so its machine does not know of it by a commit.
    context.store.tell()


def unqueue(context: Context, this_run: Run) -> None:
    """The run has ended, however it ended."""
    try:
        engine_of(context).finish(this_run.name, this_run.generation)
    except EngineUnavailable as down:
        raise QueueDown(f"{down}; start Postgres again.") from down


def engine_of(context: Context) -> JobEngine:
    engine = context.machines.engine
    if engine is None:
        raise QueueDown("Machines need a head on Postgres: set `daemon.database` in your settings.")
    return engine


def job_of(
    context: Trees, project: ProjectContext, this_run: Run, place: Workplace, asked: PreparedInput
) -> MachineJob:
    """The run as it travels, with access to a model for its machine. Raises NoModelAccess."""
    record, chosen = project.record, asked.program
    return MachineJob(
        run=this_run,
        project=TravellingProject(
            id=record.id,
            name=record.name,
            branch=record.branch,
            config_text=record.config_text,
            config_hash=record.config_hash,
        ),
        title=place.title,
        base=place.base,
        target=project.target,
        start=place.start,
        plant=place.plant,
        previous=place.previous,
        driver=chosen.driver.name,
        driver_name=chosen.name,
        argv=chosen.argv,
        timeout=chosen.timeout,
        input=asked.input,
        model=model_run.for_machine(context, this_run, chosen, asked.input) if chosen.capabilities.models else None,
        saves=place.saves,
        has_setup=place.has_setup,
        has_environment=place.has_environment,
        files=asked.files,
        variables=place.variables,
    )


def _description(job: MachineJob) -> RunSpec:
    """For readers on the head, which ask what kind of program works. No runner of the head starts it."""
    tools = job.model.settings.tools if job.model is not None else None
    return RunSpec(
        run=job.run.name,
        program=Program(argv=job.argv, cwd=_NOWHERE, env={}),
        driver=job.driver,
        options={} if tools is None else {"tools": list(tools)},
        timeout=job.timeout,
        sandbox=None,
    )


# The slots of a machine that are taken, by the rows of its runs and by what the machine itself reports.


def held(tx: ReadTransaction, machine: Machine, facts: BeatFacts) -> int:
    """A run that has ended since a waiting beat was sent has left its slot."""
    has = {(one.name, one.generation) for one in machines.open_on(tx, machine.id) if is_taken(one)}
    ending = {key for key in facts.running - has if not is_reported(tx, machine, key)}
    return len(has | ending)


def is_taken(placed: PlacedRun | None) -> bool:
    return placed is not None and placed.state is PlacementState.TAKEN


def is_reported(tx: ReadTransaction, machine: Machine, key: RunKey) -> bool:
    """Its end was accepted, and the machine does not know that yet: it sends its report once more."""
    placed = machines.placed_as(tx, key[0])
    own = placed is not None and (placed.machine, placed.generation) == (machine.id, key[1])
    return own and placed is not None and placed.state is PlacementState.ENDED


# The head and its machines as placement sees them, with what runs there now.


def places(
    context: Context, tx: ReadTransaction, at: Mapping[tuple[JobKind, int], str], now: float
) -> tuple[RunPlace, ...]:
    """The head first. `at`: the machine of each job that runs."""
    builders = Counter(machine for (kind, _), machine in at.items() if kind in TAKES_A_SLOT and kind not in READS)
    readers = Counter(machine for (kind, _), machine in at.items() if kind in READS)
    settings = context.user.daemon
    head = RunPlace(
        name=context.machine,
        head=True,
        slots=settings.room,
        only_stays=not settings.slots,
        labels=frozenset(settings.labels),
        state=PlaceState.OPEN if quota.has_room(context) else PlaceState.FULL,
        builders=builders[context.machine],
        readers=readers[context.machine],
    )
    others = [
        _place(one, context.machines.times, now, builders=builders[one.name], readers=readers[one.name])
        for one in machines.all(tx)
        if one.name != context.machine
    ]
    return (head, *others)


def _place(machine: Machine, times: LeaseTimes, now: float, *, builders: int, readers: int) -> RunPlace:
    quiet_until = _quiet_until(machine.quiet_hours, now)
    return RunPlace(
        name=machine.name,
        slots=machine.slots,
        labels=frozenset(machine.labels),
        state=condition(machine, now=now, quiet=quiet_until is not None, silent_after=times.quiet),
        quiet_until=quiet_until,
        mirrors=frozenset(machine.mirrors),
        toolchain=machine.toolchain,
        builders=builders,
        readers=readers,
    )


def _quiet_until(hours: str, now: float) -> float | None:
    quiet = hours_of(hours)
    if quiet is None:
        return None
    local = datetime.fromtimestamp(now).astimezone()
    left = quiet.left(local.hour * 60 + local.minute + local.second / 60)
    return None if left is None else now + left * 60
