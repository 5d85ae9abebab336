"""The head and its machines as a person sees them, and the log of one machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime

from legion import __version__
from legion.config.sections.limits import hours_of
from legion.domain.machines.machine import Machine, PlacedRun, condition, offered
from legion.domain.machines.machine import advice as advice_for
from legion.domain.machines.placement import PlaceState
from legion.domain.runs import seated
from legion.domain.scheduling.job_places import TAKES_A_SLOT
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.machines.head_addresses import HeadAddresses
from legion.jobs.workspace import quota
from legion.service.shared.fragments import shaped
from legion.store.work import claims, machines
from legion.system import capacity, toolchain
from legion.system.supervisors import ServiceHost, daemon_service, starts_with_machine
from legion.wire.machines import MachineLine, MachineList, MachineLog, MachineRunLine
from legion.wire.projects import DoctorFinding


def machine_list(context: Context, reachable: str = "") -> MachineList:
    """`reachable`: the address that machines dial; empty: none is served."""
    with context.store.read() as tx:
        taken = Counter(claim.machine for claim in claims.active(tx) if claim.kind in TAKES_A_SLOT)
        head = _head(context, taken[context.machine])
        others = [machine_line(context, one, taken[one.name]) for one in machines.all(tx)]
    if others:
        head = replace(head, tools=toolchain.fingerprint())
    return MachineList(machines=[head, *others], reachable=reachable, also=HeadAddresses(context.data).others())


def log(context: Context, name: str, limit: int = 50) -> MachineLog:
    with context.store.read() as tx:
        machine = machines.get(tx, name)
        given = machines.history(tx, machine.id, limit)
        lines = [shaped(MachineRunLine, one, run=one.name, ticket=_ticket(one)) for one in reversed(given)]
    return MachineLog(machine=machine_line(context, machine, sum(one.open for one in given)), runs=lines)


def machine_line(context: Context, machine: Machine, taken: int) -> MachineLine:
    now = context.clock()
    reaped = context.machines.times.reap
    state = condition(machine, now=now, quiet=is_quiet(machine.quiet_hours, now), silent_after=reaped)
    return shaped(
        MachineLine,
        machine,
        head=False,
        state=state.value,
        runs=taken,
        tools=machine.toolchain,
        advice=advice_for(machine, state),
        offers=offered(machine),
    )


def is_quiet(hours: str, now: float) -> bool:
    quiet = hours_of(hours)
    local = datetime.fromtimestamp(now).astimezone()
    return quiet is not None and quiet.left(local.hour * 60 + local.minute) is not None


def _head(context: Board, taken: int) -> MachineLine:
    state, advice = PlaceState.OPEN, ""
    if not quota.has_room(context):
        state, advice = PlaceState.FULL, "delete files on its disk, or set `environment.free_mb` in your settings"
    elif not context.user.daemon.slots:
        state, advice = PlaceState.PAUSED, "it takes only what cannot run elsewhere: `daemon.slots` is 0"
    return MachineLine(
        name=context.machine,
        head=True,
        state=state.value,
        labels=list(context.user.daemon.labels),
        slots=context.user.daemon.slots,
        runs=taken,
        version=__version__,
        heard_at=None,
        joined_at=None,
        quiet_hours="",
        tools="",
        disk_free_mb=capacity.free_mb(context.data.root),
        advice=advice,
    )


def _ticket(one: PlacedRun) -> int | None:
    """A check on a machine has no row among the runs: its name has the ticket whose proof it is."""
    known = seated(one.name.rpartition("-run-")[0])
    return known[1] or None if known is not None and known[0] == "ticket" else None


# The findings of `legion doctor` about each machine.

_BROKEN = (PlaceState.SILENT.value, PlaceState.OUTDATED.value, PlaceState.FULL.value)


def findings(context: Context) -> list[DoctorFinding]:
    now = context.clock()
    with context.store.read() as tx:
        unreliable = {one.name for one in machines.all(tx) if one.is_unreliable}
    others = (one for one in machine_list(context).machines if not one.head)
    of_machines = [_finding(one, now, one.name in unreliable) for one in others]
    return [_agents_at_once(context), *_after_a_reboot(context), *of_machines]


def _finding(one: MachineLine, now: float, unreliable: bool) -> DoctorFinding:
    heard = "never heard" if one.heard_at is None else f"heard {max(0, round(now - one.heard_at))} s ago"
    return DoctorFinding(
        name=f"machine {one.name}",
        ok=one.state not in _BROKEN and not unreliable,
        detail=f"{one.state}, {one.runs} of {one.slots} slots taken, Legion {one.version}, {heard}",
        advice=one.advice,
    )


def _agents_at_once(context: Board) -> DoctorFinding:
    """No number caps what the machine holds: `daemon.slots` is the person's own, and says no more than it can."""
    slots, memory, files = context.user.daemon.room, capacity.agents_by_memory(), capacity.agents_by_open_files()
    detail = f"{slots} by `daemon.slots`; the memory of this machine holds about {memory}, its open files {files}"
    fits = slots <= min(memory, files)
    advice = "" if fits else f"set `slots` under [daemon] to {min(memory, files)} or fewer, or raise `ulimit -n`"
    return DoctorFinding(name="agents at once", ok=True, detail=detail, advice=advice)


def _after_a_reboot(context: Board) -> list[DoctorFinding]:
    host = ServiceHost.here()
    made = daemon_service(context.data.root, host)
    if made is None:
        return []
    detail, advice = "Legion stands still until a command starts it", "`legion up --service`"
    if made.file.exists():
        detail = f"{made.file} starts it {'with the machine' if starts_with_machine() else 'when you log in'}"
        advice = "" if starts_with_machine() else made.advice
    return [DoctorFinding(name="after a reboot", ok=True, detail=detail, advice=advice)]
