"""The findings of `legion doctor` about each machine."""

from __future__ import annotations

from legion.domain.machines.placement import PlaceState
from legion.jobs.context import Context
from legion.service.machines.listing import machine_list
from legion.store.work import machines
from legion.wire.machines import MachineLine
from legion.wire.projects import DoctorFinding

_BROKEN = (PlaceState.SILENT.value, PlaceState.OUTDATED.value, PlaceState.FULL.value)


def findings(context: Context) -> list[DoctorFinding]:
    now = context.clock()
    with context.store.read() as tx:
        unreliable = {one.name for one in machines.all(tx) if one.is_unreliable}
    return [_finding(one, now, one.name in unreliable) for one in machine_list(context).machines if not one.head]


def _finding(one: MachineLine, now: float, unreliable: bool) -> DoctorFinding:
    heard = "never heard" if one.heard_at is None else f"heard {max(0, round(now - one.heard_at))} s ago"
    return DoctorFinding(
        name=f"machine {one.name}",
        ok=one.state not in _BROKEN and not unreliable,
        detail=f"{one.state}, {one.runs} of {one.slots} slots taken, Legion {one.version}, {heard}",
        advice=one.advice,
    )
