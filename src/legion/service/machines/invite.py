"""Invites a machine: a line that lets one host join, once and for a quarter of an hour."""

from __future__ import annotations

from typing import Protocol

from legion.config.sections.limits import hours_of
from legion.domain.errors import BadInput, NotAllowed
from legion.domain.machines.machine import INVITATION_SECONDS, label_fault, name_fault
from legion.jobs.context import Context
from legion.store.work import machines
from legion.wire.machines import InviteMachine, MachineInvitation

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
