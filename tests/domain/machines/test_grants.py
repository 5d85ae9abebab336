"""The rule of grants, over every small number of slots, runs and waiting runs."""

from __future__ import annotations

from itertools import product

import pytest

from legion.domain.machines.machine import Machine, MachineState, may_grant

_SMALL = range(4)


@pytest.mark.parametrize("state", list(MachineState), ids=lambda state: state.value)
def test_a_run_is_granted_only_where_it_could_be_taken_next(state: MachineState):
    for slots, free, held, queued in product(_SMALL, repeat=4):
        machine = Machine(id=1, name="desk", labels=(), slots=slots, state=state)
        granted = may_grant(machine, free=free, held=held, queued=queued)
        taken_next = queued == 0 and min(free, slots - held) >= 1
        assert granted == (state is MachineState.ACTIVE and taken_next), (slots, free, held, queued)
