"""Gives a run to its machine: writes what has to travel, and queues the run there. Each step may be repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from legion.domain.errors import LegionError
from legion.domain.machines.grants import may_grant
from legion.domain.machines.machine import Machine, PlacedRun, PlacementState
from legion.domain.runs import Run
from legion.domain.tickets.ticket import Ticket
from legion.drivers import Program
from legion.drivers.profile import RunInput
from legion.jobs.agent import model_run, spec
from legion.jobs.agent.model_run import AgentProgram
from legion.jobs.context import Context, ProjectContext
from legion.jobs.machine_runs import slots
from legion.jobs.machines.engine import EngineUnavailable, JobEngine, PlacedJob
from legion.jobs.machines.long_polls import BeatFacts
from legion.jobs.machines.travel import FILE, MachineJob, TravellingProject
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
    return may_grant(machine, free=facts.free, held=slots.held(tx, machine, facts), queued=queued)


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


def build_job(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> MachineJob:
    """The run of a ticket's builder."""
    assert ticket.base is not None, "a started ticket has a base"
    chosen, given = spec.for_machine(context, project, ticket, this_run)
    with context.store.read() as tx:
        previous, saved = _before(tx, this_run)
    made = read_job(context, project, this_run, chosen, given, base=ticket.base, title=ticket.spec.title)
    return replace(made, start=saved, plant=ticket.plant, previous=previous, saves=True)


def read_job(
    context: Context,
    project: ProjectContext,
    this_run: Run,
    chosen: AgentProgram,
    given: RunInput,
    *,
    base: str,
    title: str,
) -> MachineJob:
    """A run in a checkout of `base`, which is thrown away at the end: of a reviewer, an adviser or a planner."""
    record = project.record
    return MachineJob(
        run=this_run,
        project=TravellingProject(
            id=record.id,
            name=record.name,
            branch=record.branch,
            config_text=record.config_text,
            config_hash=record.config_hash,
        ),
        title=title,
        base=base,
        target=project.target,
        start=None,
        previous="",
        saves=False,
        driver=chosen.driver.name,
        driver_name=chosen.name,
        argv=chosen.argv,
        timeout=chosen.timeout,
        input=given,
        model=model_run.for_machine(context, this_run, chosen, given) if chosen.capabilities.models else None,
    )


def _before(tx: ReadTransaction, this_run: Run) -> tuple[str, str | None]:
    """The name of the builder's run before this one, and the last commit that one of them saved."""
    earlier = [run for run in runs.of_seat(tx, this_run) if run.id < this_run.id]
    saved = [run.saved for run in earlier if run.saved is not None]
    return (earlier[-1].name if earlier else "", saved[-1] if saved else None)


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
