"""The head and its machines as placement sees them, with what runs there now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from legion.config.sections.limits import hours_of
from legion.domain.machines.condition import condition
from legion.domain.machines.leases import LeaseTimes
from legion.domain.machines.machine import Machine
from legion.domain.machines.placement import PlaceState, RunPlace
from legion.domain.scheduling.job_kinds import READS, TAKES_A_SLOT, JobKind
from legion.jobs.context import Context
from legion.jobs.workspace import quota
from legion.store.database.transactions import ReadTransaction
from legion.store.work import machines


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
