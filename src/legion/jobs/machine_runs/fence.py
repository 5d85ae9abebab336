"""The fence: which run of a machine a request is about, and whether the machine still has it."""

from __future__ import annotations

from legion.domain.errors import StateConflict
from legion.domain.machines.machine import Machine, PlacedRun, PlacementState
from legion.store.database.transactions import ReadTransaction
from legion.store.work import machines


class StaleRun(StateConflict):
    """The run is not this machine's, or no longer: the machine ends it and sends what it left as late work."""

    code = "stale_run"


def own(tx: ReadTransaction, machine: Machine, run: str, generation: int) -> PlacedRun:
    """The run that this machine was given under this generation, whatever has become of it. Raises StaleRun."""
    placed = machines.placed_as(tx, run)
    if placed is None or placed.machine != machine.id or placed.generation != generation:
        raise StaleRun(f"Run {run} in generation {generation} was not given to machine {machine.name}.")
    return placed


def current(tx: ReadTransaction, machine: Machine, run: str, generation: int) -> PlacedRun:
    """The same, where the machine has taken it and may still write. Raises StaleRun."""
    placed = own(tx, machine, run, generation)
    if placed.state is not PlacementState.TAKEN:
        raise StaleRun(
            f"Run {run} in generation {generation} is {placed.state.value}: nothing more is accepted for it."
        )
    return placed


def late(tx: ReadTransaction, machine: Machine, run: str, generation: int) -> PlacedRun:
    """A run of this machine whose lease ended while the machine had it. Raises StaleRun."""
    placed = own(tx, machine, run, generation)
    if placed.state is not PlacementState.LAPSED or not placed.taken:
        raise StaleRun(f"Run {run} in generation {generation} is {placed.state.value}: it has no late work.")
    return placed
