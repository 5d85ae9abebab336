"""Machines and their invitations, the runs that they were given, and requests to those runs. Secrets are hashes."""

from __future__ import annotations

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, insert, select, update

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.machines.machine import (
    MOST_LOST,
    CommandKind,
    Machine,
    MachineState,
    PlacedRun,
    PlacementState,
    RunCommand,
)
from legion.domain.machines.placement import PlaceState
from legion.domain.projects import Project
from legion.domain.runs import Run
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE, _RUNS, _COMMANDS = schema.machines.c, schema.machine_runs.c, schema.machine_commands.c
NO_RUN = 0
"""The run of a request to a machine itself."""
_OPEN = (PlacementState.PLACED, PlacementState.TAKEN)


@dataclass(frozen=True, kw_only=True)
class MachineNews:
    has_waiting: bool
    """A run waits for the machine. It may not be in the queue yet."""
    mirrors: tuple[int, ...]
    """The projects whose code it has."""
    facts: Hashable
    """Differs where anything has changed that the machine has to know."""


def _machine(row: Stored) -> Machine:
    own = {name: getattr(row, name) for name in Machine.__dataclass_fields__}
    return Machine(**{**own, "labels": tuple(own["labels"]), "mirrors": tuple(own["mirrors"])})


_ALL = FixedQuery(
    select(schema.machines).where(_TABLE.removed_at.is_(None)).order_by(_TABLE.id), _machine, remember=None
)
_STATES = FixedQuery(
    select(_TABLE.id, _TABLE.state, _TABLE.mirrors).where(_TABLE.removed_at.is_(None)),
    lambda row: (int(row.id), MachineState(row.state), tuple(row.mirrors)),
    remember=5_000,
)
_OPEN_RUNS = FixedQuery(
    select(_RUNS.machine, _RUNS.state, func.count().label("many"), func.max(_RUNS.run).label("last"))
    .where(_RUNS.ended_at.is_(None))
    .group_by(_RUNS.machine, _RUNS.state),
    lambda row: (int(row.machine), PlacementState(row.state), int(row.many), int(row.last)),
    remember=5_000,
)
_LAST_COMMANDS = FixedQuery(
    select(_COMMANDS.machine, func.max(_COMMANDS.id).label("last")).group_by(_COMMANDS.machine),
    lambda row: (int(row.machine), int(row.last)),
    remember=None,
)
_BY_TOKEN = FixedQuery(
    select(schema.machines).where(_TABLE.token_hash == bindparam("secret"), _TABLE.removed_at.is_(None)),
    _machine,
    remember=50,
)


def _placed_run(row: Stored) -> PlacedRun:
    return PlacedRun(**{name: getattr(row, name) for name in PlacedRun.__dataclass_fields__})


def _placed_runs(*where: ColumnElement[bool]) -> FixedQuery[PlacedRun]:
    return FixedQuery(select(schema.machine_runs).where(*where).order_by(_RUNS.run), _placed_run, remember=500)


_PLACED = _placed_runs(_RUNS.run == bindparam("wanted"))
_PLACED_AS = _placed_runs(_RUNS.name == bindparam("wanted"))
_OPEN_ANYWHERE = _placed_runs(_RUNS.ended_at.is_(None))
_OPEN_ON = _placed_runs(_RUNS.ended_at.is_(None), _RUNS.machine == bindparam("wanted"))


def invite(
    tx: Transaction, *, name: str, labels: Collection[str], slots: int, quiet_hours: str = "", seconds: float
) -> str:
    """A code that makes one host this machine, once and within `seconds`. Raises StateConflict for a name in use."""
    if find(tx, name) is not None:
        raise StateConflict(f"There is a machine {name} already: `legion machine remove {name}`, or use another name.")
    table = schema.machine_invitations.c
    tx.execute(delete(schema.machine_invitations).where((table.name == name) | (table.ends_at <= tx.now)))
    code = secrets.token_urlsafe(24)
    row = {
        "id": tx.next("machine_invitation"),
        "code_hash": _hash(code),
        "name": name,
        "labels": sorted(labels),
        "slots": slots,
        "quiet_hours": quiet_hours,
        "made_at": tx.now,
        "ends_at": tx.now + seconds,
        "used_at": None,
    }
    tx.execute(insert(schema.machine_invitations), [row])
    return code


def join(
    tx: Transaction, code: str, *, boot: str, version: str, protocol: int, toolchain: str
) -> tuple[str, Machine] | None:
    """The token of the new machine; None where the code is unknown, used or too old."""
    table = schema.machine_invitations.c
    valid = (table.code_hash == _hash(code), table.used_at.is_(None), table.ends_at > tx.now)
    invited = tx.execute(select(schema.machine_invitations).where(*valid)).one_or_none()
    if invited is None or find(tx, invited.name) is not None:
        return None
    tx.execute(update(schema.machine_invitations).where(table.id == invited.id).values(used_at=tx.now))
    token = secrets.token_urlsafe(32)
    row = {
        "id": tx.next("machine"),
        "name": invited.name,
        "labels": invited.labels,
        "slots": invited.slots,
        "state": MachineState.ACTIVE,
        "token_hash": _hash(token),
        "boot": boot,
        "version": version,
        "protocol": protocol,
        "toolchain": toolchain,
        "quiet_hours": invited.quiet_hours,
        "mirrors": [],
        "heard_at": tx.now,
        "joined_at": tx.now,
        "removed_at": None,
    }
    tx.execute(insert(schema.machines), [row])
    return token, get(tx, invited.name)


def all(tx: ReadTransaction) -> tuple[Machine, ...]:
    """Those that were not removed, in the order in which they joined."""
    return _ALL.all(tx)


def find(tx: ReadTransaction, name: str) -> Machine | None:
    return next((one for one in all(tx) if one.name == name), None)


def get(tx: ReadTransaction, name: str) -> Machine:
    found = find(tx, name)
    if found is None:
        raise NotFound(f"There is no machine {name}: `legion machine list` lists them.")
    return found


def of_token(tx: ReadTransaction, token: str) -> Machine | None:
    return _BY_TOKEN.first(tx, secret=_hash(token))


def beat(
    tx: Transaction,
    machine: int,
    *,
    boot: str,
    version: str,
    protocol: int,
    mirrors: Collection[int],
    toolchain: str | None = None,
    disk_free_mb: int | None = None,
    disk_floor_mb: int = 0,
) -> None:
    """A sign of life, and what the machine reports about itself."""
    values = {
        "boot": boot,
        "version": version,
        "protocol": protocol,
        "mirrors": sorted(mirrors),
        "heard_at": tx.now,
        "disk_free_mb": disk_free_mb,
        "disk_floor_mb": disk_floor_mb,
    }
    if toolchain is not None:
        values["toolchain"] = toolchain
    tx.execute(update(schema.machines).where(_TABLE.id == machine).values(values))


def note_disk(tx: Transaction, machine: Machine, *, is_full: bool) -> None:
    """Its disk got full, or has room again. That may last for seconds, and is found in the events afterwards."""
    states = (PlaceState.OPEN.value, PlaceState.FULL.value)
    before, now = states if is_full else reversed(states)
    tx.record(EventKind.MACHINE_STATE, project=None, data={"machine": machine.name, "from": before, "to": now})


def note_loss(tx: Transaction, run: PlacedRun) -> None:
    """A run was lost on its machine. One that loses runs again and again is paused, and the person gets to know it."""
    machine = next((one for one in all(tx) if one.id == run.machine), None)
    if machine is None or run.taken_at is None or (machine.lost_at is not None and run.taken_at <= machine.lost_at):
        return
    lost = machine.lost + 1
    tx.execute(update(schema.machines).where(_TABLE.id == machine.id).values(lost=lost, lost_at=tx.now))
    if lost >= MOST_LOST and machine.state is MachineState.ACTIVE:
        why = (
            f"machine {machine.name} lost runs {lost} times in a row and gets no more: read its log there, then "
            f"`legion machine resume {machine.name}`"
        )
        _move(tx, machine, MachineState.PAUSED, project=run.project, reason=why)


def note_copy(tx: Transaction, machine: Machine) -> None:
    """Two workers have its token. It is paused, and the person gets to know it."""
    if machine.state is MachineState.ACTIVE:
        why = (
            f"two workers call themselves machine {machine.name}, so its folder was copied, and neither gets more "
            f"runs: remove the copy, `legion machine invite` it under a name of its own, then "
            f"`legion machine resume {machine.name}`"
        )
        _move(tx, machine, MachineState.PAUSED, reason=why)


def note_end(tx: Transaction, machine: int) -> None:
    """A run ended there as it should."""
    tx.execute(update(schema.machines).where(_TABLE.id == machine, _TABLE.lost > 0).values(lost=0))


def set_state(tx: Transaction, name: str, state: MachineState) -> Machine:
    """Pause, resume, drain or remove it. A removed machine's token is valid no longer."""
    return _move(tx, get(tx, name), state)


def _move(
    tx: Transaction, machine: Machine, state: MachineState, *, project: int | None = None, reason: str = ""
) -> Machine:
    values: dict[str, object] = {"state": state}
    if state is MachineState.ACTIVE:
        values["lost"] = 0
    if state is MachineState.REMOVED:
        values |= {"token_hash": None, "removed_at": tx.now}
    tx.execute(update(schema.machines).where(_TABLE.id == machine.id).values(values))
    tx.tell()
    if state is not machine.state:
        data = {"machine": machine.name, "from": machine.state.value, "to": state.value}
        tx.record(EventKind.MACHINE_STATE, project=project, data={**data, "reason": reason} if reason else data)
    found = tx.execute(select(schema.machines).where(_TABLE.id == machine.id)).one()
    return _machine(found)


def place(tx: Transaction, run: Run, machine: Machine, *, worker: str | None = None) -> PlacedRun:
    """The run waits for its machine from now on, or this worker process has it already. Repeating it changes nothing.

    No news for the machine: it gets the run from the queue, or with the answer that its worker waits for.
    """
    known = placed(tx, run.id)
    if known is not None:
        return known
    row: dict[str, Any] = {
        "run": run.id,
        "name": run.name,
        "project": run.project,
        "generation": run.generation,
        "machine": machine.id,
        "state": PlacementState.PLACED if worker is None else PlacementState.TAKEN,
        "placed_at": tx.now,
        "taken_at": None if worker is None else tx.now,
        "taken_by": worker or "",
        "beats": 0,
        "ended_at": None,
        "why": "",
    }
    tx.execute(insert(schema.machine_runs), [row])
    return PlacedRun(**row)


def placed(tx: ReadTransaction, run: int) -> PlacedRun | None:
    return _PLACED.first(tx, wanted=run)


def placed_as(tx: ReadTransaction, name: str) -> PlacedRun | None:
    """By the name of the run's folder."""
    return _PLACED_AS.first(tx, wanted=name)


def open_on(tx: ReadTransaction, machine: int | None = None) -> tuple[PlacedRun, ...]:
    """Runs that wait for this machine or are on it, oldest first; without a machine, on any."""
    return _OPEN_ANYWHERE.all(tx) if machine is None else _OPEN_ON.all(tx, wanted=machine)


def was_given(tx: ReadTransaction, machine: int, project: int) -> bool:
    """Whether this machine was ever given a run of the project."""
    found = select(_RUNS.run).where(_RUNS.machine == machine, _RUNS.project == project).limit(1)
    return tx.execute(found).first() is not None


def news(tx: ReadTransaction) -> dict[int, MachineNews]:
    """What concerns each machine that was not removed, by its number. The cost does not depend on who waits for it."""
    runs: defaultdict[int, list[tuple[str, int, int]]] = defaultdict(list)
    waits = set()
    for machine, state, many, last in _OPEN_RUNS.all(tx):
        runs[machine].append((state.value, many, last))
        if state is PlacementState.PLACED:
            waits.add(machine)
    commands = dict(_LAST_COMMANDS.all(tx))
    return {
        machine: MachineNews(
            has_waiting=machine in waits,
            mirrors=mirrors,
            facts=(state, commands.get(machine, 0), *sorted(runs[machine])),
        )
        for machine, state, mirrors in _STATES.all(tx)
    }


def history(tx: ReadTransaction, machine: int, most: int) -> tuple[PlacedRun, ...]:
    """The runs that this machine was given, newest first."""
    found = select(schema.machine_runs).where(_RUNS.machine == machine).order_by(_RUNS.run.desc()).limit(most)
    return tuple(map(_placed_run, tx.execute(found)))


def take(tx: Transaction, run: int, worker: str) -> bool:
    """This worker process has it now. False where it has ended or lapsed already."""
    mine = update(schema.machine_runs).where(_RUNS.run == run, _RUNS.ended_at.is_(None))
    values = {"state": PlacementState.TAKEN, "taken_at": tx.now, "taken_by": worker}
    tx.tell()
    return tx.execute(mine.values(values)).rowcount == 1


def named(tx: Transaction, machine: int, names: Collection[str]) -> None:
    """The machine has named these runs in a beat: their leases are renewed."""
    if names:
        mine = (_RUNS.machine == machine, _RUNS.ended_at.is_(None), _RUNS.name.in_(names))
        tx.execute(update(schema.machine_runs).where(*mine).values(beats=_RUNS.beats + 1))


def move(tx: Transaction, run: int, state: PlacementState, why: str = "") -> bool:
    """False, and nothing changes, where it has ended or lapsed already: both are final."""
    ended = None if state in _OPEN else tx.now
    values: dict[str, object] = {"state": state, "ended_at": ended, "why": why}
    if state is PlacementState.TAKEN:
        values["taken_at"] = tx.now
    mine = update(schema.machine_runs).where(_RUNS.run == run, _RUNS.ended_at.is_(None))
    if tx.execute(mine.values(values)).rowcount != 1:
        return False
    if ended is not None:
        tx.execute(delete(schema.machine_commands).where(_COMMANDS.run == run))
    tx.tell()
    return True


def send(tx: Transaction, run: PlacedRun, kind: CommandKind, facts: Mapping[str, object]) -> None:
    """Ask the run's runner for this. The request waits until the machine has acknowledged it."""
    row = {
        "id": tx.next("machine_command"),
        "run": run.run,
        "name": run.name,
        "machine": run.machine,
        "kind": kind,
        "facts": dict(facts),
        "made_at": tx.now,
    }
    tx.execute(insert(schema.machine_commands), [row])
    tx.tell()


def send_to_machine(tx: Transaction, machine: int, kind: CommandKind) -> None:
    """Ask the machine itself for this. A request of this kind that still waits is enough."""
    waits = (_COMMANDS.machine == machine, _COMMANDS.kind == kind, _COMMANDS.run == NO_RUN)
    if tx.execute(select(_COMMANDS.id).where(*waits)).first() is not None:
        return
    row = {
        "id": tx.next("machine_command"),
        "run": NO_RUN,
        "name": "",
        "machine": machine,
        "kind": kind,
        "facts": {},
        "made_at": tx.now,
    }
    tx.execute(insert(schema.machine_commands), [row])
    tx.tell()


def commands(tx: ReadTransaction, machine: int) -> tuple[RunCommand, ...]:
    found = select(schema.machine_commands).where(_COMMANDS.machine == machine).order_by(_COMMANDS.id)
    return tuple(RunCommand(id=row.id, run=row.name, kind=row.kind, facts=row.facts) for row in tx.execute(found))


def acknowledge(tx: Transaction, machine: int, ids: Collection[int]) -> None:
    if ids:
        tx.execute(delete(schema.machine_commands).where(_COMMANDS.machine == machine, _COMMANDS.id.in_(ids)))


def _hash(secret: str) -> str:
    """A plain hash is enough: 192 random bits cannot be guessed from it."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def put_project(tx: Transaction, project: Project) -> None:
    """As it is now on the head."""
    known = tx.execute(select(schema.projects.c.id).where(schema.projects.c.id == project.id)).first()
    values = asdict(project)
    if known is None:
        tx.execute(insert(schema.projects), [values])
    else:
        del values["id"]
        tx.execute(update(schema.projects).where(schema.projects.c.id == project.id).values(values))


def put_run(tx: Transaction, run: Run) -> None:
    """Once: what became of it here is not overwritten."""
    known = tx.execute(select(schema.runs.c.id).where(schema.runs.c.id == run.id)).first()
    if known is None:
        tx.execute(insert(schema.runs), [asdict(run)])
