"""The findings of `legion doctor` about each machine."""

from __future__ import annotations

from legion.domain.machines.placement import PlaceState
from legion.jobs.context import Context
from legion.service.machines.listing import machine_list
from legion.wire.machine_pages import MachineLine
from legion.wire.projects import DoctorFinding

_BROKEN = (PlaceState.SILENT.value, PlaceState.OUTDATED.value)


def findings(context: Context) -> list[DoctorFinding]:
    now = context.clock()
    return [_finding(one, now) for one in machine_list(context).machines if not one.head]


def _finding(one: MachineLine, now: float) -> DoctorFinding:
    heard = "never heard" if one.heard_at is None else f"heard {max(0, round(now - one.heard_at))} s ago"
    return DoctorFinding(
        name=f"machine {one.name}",
        ok=one.state not in _BROKEN,
        detail=f"{one.state}, {one.runs} of {one.slots} slots taken, Legion {one.version}, {heard}",
        advice=one.advice,
    )
