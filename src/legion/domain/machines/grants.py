"""Grants: whether a machine that waits for work gets a run at once, without waiting for its turn in the queue."""

from __future__ import annotations

from legion.domain.machines.machine import Machine, MachineState


def may_grant(machine: Machine, *, free: int, held: int, queued: int) -> bool:
    """`free`: runs that the machine asks for. `held`: its slots that are taken. `queued`: runs placed there earlier
    that it has not taken yet, which come first.
    """
    return machine.state is MachineState.ACTIVE and free > 0 and queued == 0 and held < machine.slots
