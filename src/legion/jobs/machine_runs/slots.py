"""The slots of a machine that are taken, by the rows of its runs and by what the machine itself reports."""

from __future__ import annotations

from legion.domain.machines.machine import Machine, PlacedRun, PlacementState
from legion.jobs.machines.engine import RunKey
from legion.jobs.machines.long_polls import BeatFacts
from legion.store.database.transactions import ReadTransaction
from legion.store.work import machines


def held(tx: ReadTransaction, machine: Machine, facts: BeatFacts) -> int:
    """A run that has ended since a waiting beat was sent has left its slot."""
    has = {(one.name, one.generation) for one in machines.open_on(tx, machine.id) if is_taken(one)}
    ending = {key for key in facts.running - has if not is_reported(tx, machine, key)}
    return len(has | ending)


def is_taken(placed: PlacedRun | None) -> bool:
    return placed is not None and placed.state is PlacementState.TAKEN


def is_reported(tx: ReadTransaction, machine: Machine, key: RunKey) -> bool:
    """Its end was accepted, and the machine does not know that yet: it sends its report once more."""
    placed = machines.placed_as(tx, key[0])
    own = placed is not None and (placed.machine, placed.generation) == (machine.id, key[1])
    return own and placed is not None and placed.state is PlacementState.ENDED
