"""The condition of a machine: every combination of what a person asked for, its protocol, its silence and its hours."""

from __future__ import annotations

import itertools

import pytest

from legion.domain.machines.machine import PROTOCOL, LeaseTimes, Machine, MachineState, advice, condition
from legion.domain.machines.placement import PlaceState

NOW = 1000.0
TIMES = LeaseTimes()


def machine(state: MachineState = MachineState.ACTIVE, protocol: int = PROTOCOL, heard: float | None = NOW) -> Machine:
    return Machine(
        id=1, name="desk", labels=(), slots=4, state=state, protocol=protocol, heard_at=heard, version="0.2.0"
    )


@pytest.mark.parametrize(
    "state", [MachineState.ACTIVE, MachineState.PAUSED, MachineState.DRAINING], ids=lambda s: s.value
)
def test_only_an_active_machine_of_a_near_release_that_is_heard_outside_its_quiet_hours_is_open(state: MachineState):
    for protocol, heard, quiet in itertools.product(
        range(PROTOCOL - 2, PROTOCOL + 4), (None, NOW, NOW - TIMES.reap + 1, NOW - TIMES.reap), (False, True)
    ):
        found = condition(machine(state, protocol, heard), now=NOW, quiet=quiet, silent_after=TIMES.reap)
        near = abs(protocol - PROTOCOL) <= 1
        audible = heard is not None and NOW - heard < TIMES.reap
        open = state is MachineState.ACTIVE and near and audible and not quiet
        assert (found is PlaceState.OPEN) == open
        if state is MachineState.ACTIVE:
            assert (found is PlaceState.OUTDATED) == (not near)
            assert (found is PlaceState.SILENT) == (near and not audible)


def test_what_a_person_can_change_has_a_command():
    for state in (PlaceState.PAUSED, PlaceState.DRAINING, PlaceState.SILENT):
        assert "`legion machine re" in advice(machine(), state)
    assert "`legion machine update desk`" in advice(machine(protocol=PROTOCOL - 2), PlaceState.OUTDATED)
    assert "update the head" in advice(machine(protocol=PROTOCOL + 2), PlaceState.OUTDATED)
    assert advice(machine(), PlaceState.OPEN) == advice(machine(), PlaceState.QUIET) == ""
