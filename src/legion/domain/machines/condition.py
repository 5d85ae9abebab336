"""The condition of a machine: whether it takes new work now, and the reason in one sentence where it does not."""

from __future__ import annotations

from legion.domain.machines.machine import Machine, MachineState, ProtocolFit, protocol_fit
from legion.domain.machines.placement import PlaceState

_BY_PERSON = {MachineState.PAUSED: PlaceState.PAUSED, MachineState.DRAINING: PlaceState.DRAINING}


_ALL = frozenset(MachineState) - {MachineState.REMOVED}
OFFERS: dict[str, frozenset[MachineState]] = {
    "machine_log": _ALL,
    "pause_machine": _ALL - {MachineState.PAUSED},
    "resume_machine": _ALL - {MachineState.ACTIVE},
    "drain_machine": _ALL - {MachineState.DRAINING},
    "update_machine": _ALL,
    "remove_machine": _ALL,
}
"""The operations that change something at a machine in these states, by their names. The head offers none."""


def offered(machine: Machine) -> list[str]:
    return [name for name, states in OFFERS.items() if machine.state in states]


def condition(machine: Machine, *, now: float, quiet: bool, silent_after: float) -> PlaceState:
    """`quiet`: now is within its quiet hours. What a person asked for comes first, then what cannot be changed here.

    `silent_after`: seconds without a beat. A new run needs a machine that was heard lately; a list waits for the reap.
    """
    if machine.state in _BY_PERSON:
        return _BY_PERSON[machine.state]
    if protocol_fit(machine.protocol) is not ProtocolFit.SERVED:
        return PlaceState.OUTDATED
    if machine.heard_at is None or now - machine.heard_at >= silent_after:
        return PlaceState.SILENT
    if machine.is_full:
        return PlaceState.FULL
    return PlaceState.QUIET if quiet else PlaceState.OPEN


def advice(machine: Machine, state: PlaceState) -> str:
    """What is wrong with a machine, and the command that fixes it; empty where nothing is."""
    name = machine.name
    match state:
        case PlaceState.SILENT:
            return f"it does not answer: start `legion machine join` there, or `legion machine remove {name}`"
        case PlaceState.OUTDATED if protocol_fit(machine.protocol) is ProtocolFit.OLD:
            return (
                f"its Legion {machine.version} is too old for this one: install the release of the head there, then "
                f"`legion machine update {name}`. What it runs continues."
            )
        case PlaceState.OUTDATED:
            return f"its Legion {machine.version} is too new for this one: update the head. What it runs continues."
        case PlaceState.FULL:
            return (
                f"its disk is full, {machine.disk_free_mb} MB are free and {machine.disk_floor_mb} MB are needed: "
                "delete files there, or set `environment.free_mb` in its settings"
            )
        case PlaceState.PAUSED if machine.is_unreliable:
            return (
                f"it lost runs {machine.lost} times in a row: read its log there, then `legion machine resume {name}`"
            )
        case PlaceState.PAUSED:
            return f"it is paused: `legion machine resume {name}`"
        case PlaceState.DRAINING:
            return f"it is draining: `legion machine resume {name}`, or remove or update it when its runs have ended"
        case _:
            return ""
