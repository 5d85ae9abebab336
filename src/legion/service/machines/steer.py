"""Pause, resume, drain, update and remove a machine."""

from __future__ import annotations

from legion.domain.errors import StateConflict
from legion.domain.machines.machine import CommandKind, Machine, MachineState, PlacementState
from legion.domain.text import count
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.service.machines.listing import machine_line
from legion.store.database.transactions import Transaction
from legion.store.work import machines
from legion.wire.machines import RemoveMachine
from legion.wire.projects import Done

_REMOVED = "its machine was removed"


def _refuse_head(context: Board, name: str, word: str) -> None:
    if name == context.machine:
        raise StateConflict(
            f"{name} is the head itself, and is not {word}: `daemon.slots = 0` in your settings keeps it free of "
            "agents that can work on machines."
        )


def pause(context: Board, name: str) -> Done:
    _refuse_head(context, name, "paused")
    with context.store.write() as tx:
        machine = machines.set_state(tx, name, MachineState.PAUSED)
        left = _left(tx, machine)
    return Done(message=f"{name} is paused: nothing new starts there. {left} `legion machine resume {name}` ends that.")


def resume(context: Context, name: str) -> Done:
    with context.store.write() as tx:
        machine = machines.set_state(tx, name, MachineState.ACTIVE)
    advice = machine_line(context, machine, 0).advice
    return Done(message=f"{name} takes new runs.", notes=[f"{name}: {advice}"] if advice else [])


def drain(context: Board, name: str) -> Done:
    _refuse_head(context, name, "drained")
    with context.store.write() as tx:
        machine = machines.set_state(tx, name, MachineState.DRAINING)
        left = _left(tx, machine)
    return Done(message=f"{name} is draining: nothing new starts there. {left}")


def remove(context: Board, name: str, wanted: RemoveMachine) -> Done:
    """Its runs lapse in the same transaction, so nothing that it still sends counts. Raises StateConflict."""
    with context.store.write() as tx:
        machine = machines.get(tx, name)
        there = machines.open_on(tx, machine.id)
        if there and not wanted.yes:
            raise StateConflict(
                f"{name} has {count(len(there), 'run')}, and work that is not saved yet would stay there: "
                f"`legion machine drain {name}` first, or add --yes."
            )
        for one in there:
            machines.move(tx, one.run, PlacementState.LAPSED, _REMOVED)
        machines.set_state(tx, name, MachineState.REMOVED)
    again = f" {count(len(there), 'run')} of it will start again elsewhere." if there else ""
    return Done(message=f"{name} is removed: its token opens nothing from now on.{again}")


def update(context: Context, name: str) -> Done:
    with context.store.write() as tx:
        machine = machines.get(tx, name)
        machines.send_to_machine(tx, machine.id, CommandKind.UPDATE)
    advice = machine_line(context, machine, 0).advice
    return Done(
        message=(
            f"The worker of {name} starts again with its next beat, as the release that is installed there then. "
            "Its runs continue."
        ),
        notes=[f"{name}: {advice}"] if advice else [],
    )


def _left(tx: Transaction, machine: Machine) -> str:
    there = len(machines.open_on(tx, machine.id))
    return f"{count(there, 'run')} there will continue to the end." if there else "It has no runs."
