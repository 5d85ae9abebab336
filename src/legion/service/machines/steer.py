"""Invite, pause, resume, drain, update and remove a machine."""

from __future__ import annotations

from typing import Protocol

from legion.config.sections.limits import hours_of
from legion.domain.errors import BadInput, NotAllowed, StateConflict
from legion.domain.machines.machine import (
    INVITATION_SECONDS,
    CommandKind,
    Machine,
    MachineState,
    PlacementState,
    label_fault,
    name_fault,
)
from legion.domain.text import count
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.service.machines.listing import machine_line
from legion.store.database.transactions import Transaction
from legion.store.work import machines
from legion.wire.machines import InviteMachine, MachineInvitation, RemoveMachine
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


_MOST_SLOTS = 256


class MachineServer(Protocol):
    """The part of the daemon that machines dial in to."""

    def open(self, host: str, port: int) -> str:
        """Serve this address, or the recorded one where no host is given. Returns its URL. Raises BadInput."""
        ...

    @property
    def url(self) -> str:
        """What is served now; empty: nothing is."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of the authority whose certificate the address has."""
        ...


def invite(context: Context, server: MachineServer | None, wanted: InviteMachine) -> MachineInvitation:
    if server is None or context.machines.engine is None:
        raise NotAllowed(
            "Machines need a head whose board is in Postgres: run "
            "`legion machine head move postgresql://USER@HOST/NAME`, "
            "then invite the machine again."
        )
    if fault := name_fault(wanted.name):
        raise BadInput(f"A machine's name {fault}: {wanted.name[:60]!r} is none.")
    if wanted.name == context.machine:
        raise BadInput(f"{wanted.name} is the head itself: choose another name.")
    for label in wanted.labels:
        if fault := label_fault(label):
            raise BadInput(f"A label {fault}: {label[:60]!r} is none.")
    if not 1 <= wanted.slots <= _MOST_SLOTS:
        raise BadInput(f"A machine has between 1 and {_MOST_SLOTS} slots, not {wanted.slots}.")
    if wanted.quiet_hours and hours_of(wanted.quiet_hours) is None:
        raise BadInput(f"Quiet hours are written as 22:00-07:00: {wanted.quiet_hours[:60]!r} is none.")
    url = server.open(wanted.host, wanted.port)
    with context.store.write() as tx:
        code = machines.invite(
            tx,
            name=wanted.name,
            labels=wanted.labels,
            slots=wanted.slots,
            quiet_hours=wanted.quiet_hours,
            seconds=INVITATION_SECONDS,
        )
        ends_at = tx.now + INVITATION_SECONDS
    line = f"{url}/#{code}/{server.fingerprint}"
    return MachineInvitation(name=wanted.name, line=line, ends_at=ends_at)
