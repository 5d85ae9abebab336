"""Packs: the code that a run needs, for its machine, and the change that comes back, which is not trusted."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Collection
from pathlib import Path

from legion.domain.errors import BadInput, NotAllowed
from legion.domain.machines.machine import Machine, PlacedRun
from legion.git.hub import machine_packs
from legion.jobs.board import Board
from legion.jobs.machine_runs import fence
from legion.jobs.machine_runs.arrivals import MOST_PIECE, PACK, drop_pack
from legion.jobs.machines.travel import FILE, MachineJob
from legion.jobs.trees import Trees
from legion.store.board import projects
from legion.store.work import machines, runs
from legion.system import crash
from legion.system.crash import Point

_MOST_HAVES = 50


def outgoing(context: Trees, machine: Machine, *, run: str, generation: int, have: Collection[str]) -> Path:
    """A file with all objects that the run's commits need and the machine lacks. The same request gets the same file.

    Only the commits that the job itself names are in it: a machine reads no ref and no other project.
    """
    with context.store.read() as tx:
        placed = fence.current(tx, machine, run, generation)
    _check_haves(have)
    folder = context.data.runs / run
    job = job_of(context, run)
    key = hashlib.sha256(json.dumps([job.commits, sorted(have)]).encode()).hexdigest()[:16]
    file = folder / f"leaving-{key}.pack"
    if not file.exists():
        machine_packs.write(context.hub(placed.project), file, wanted=job.commits, have=sorted(have))
    return file


def ahead(context: Trees, machine: Machine, *, project: int, commit: str, have: Collection[str]) -> bytes:
    """A pack with the project's target, before a run needs it. Only for a machine that was given a run of the project.

    Raises NotAllowed, and BadInput for a commit that is no longer the target, and for a pack that is too long for one
    answer: the next job of the project brings it.
    """
    with context.store.read() as tx:
        given = machines.was_given(tx, machine.id, project)
        target = projects.get(tx, project).target if given else ""
    if not given:
        raise NotAllowed(f"Machine {machine.name} was given no run of that project.")
    _check_haves(have)
    if commit != target:
        raise BadInput("The target of that project has moved on: ask for the one of the next beat.")
    with tempfile.TemporaryDirectory(prefix="ahead-", dir=context.data.runs) as folder:
        file = Path(folder) / "target.pack"
        machine_packs.write(context.hub(project), file, wanted=[commit], have=sorted(have))
        if file.stat().st_size > MOST_PIECE:
            raise BadInput(f"That pack is larger than {MOST_PIECE >> 20} MB: wait for a job of the project.")
        return file.read_bytes()


def _check_haves(have: Collection[str]) -> None:
    if len(have) > _MOST_HAVES or not all(machine_packs.is_id(one) for one in have):
        raise BadInput(f"Name at most {_MOST_HAVES} commits that you have, each by its full id.")


def accept(context: Trees, placed: PlacedRun, commit: str, *, keep_as: str) -> None:
    """Take the arrived pack into the hub, and hold the commit under this name. Raises BadInput for a pack that is not
    sound, and for a commit that is not built on the run's base.
    """
    hub, job = context.hub(placed.project), job_of(context, placed.name)
    if not machine_packs.is_id(commit):
        raise BadInput("The saved commit is no full id of a commit.")
    arrived = context.data.runs / placed.name / PACK
    if not machine_packs.take(hub, arrived if arrived.exists() else None, base=job.base, head=commit):
        drop_pack(context, placed.name)
        raise BadInput(
            f"The pack of run {placed.name} is damaged or not built on its base: send it again from the start."
        )
    hub.keep(keep_as, commit)


def accept_saved(context: Trees, placed: PlacedRun, commit: str) -> None:
    with context.store.read() as tx:
        run = runs.get(tx, placed.run)
    accept(context, placed, commit, keep_as=f"wip/{run.ticket}/{run.id}")
    crash.reach(Point.MACHINE_PACK_AFTER_KEEP)


def job_of(context: Board, run: str) -> MachineJob:
    """What was sent to the machine."""
    return MachineJob.from_json(json.loads((context.data.runs / run / FILE).read_bytes()))
