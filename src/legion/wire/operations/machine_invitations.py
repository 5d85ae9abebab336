# mypy: disable-error-code="empty-body"
"""The row of the table of operations that lets a machine in; `operations` explains it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import OpenTo, Table, operation

if TYPE_CHECKING:
    from legion import wire


class InvitationOperations(Table):
    """A machine runs programs in the person's name, so only the person lets one in."""

    @operation("POST", "/v1/machines", open_to=OpenTo.BROWSER, created=True)
    def invite_machine(self, wanted: wire.machines.InviteMachine, /) -> wire.machines.MachineInvitation:
        """Make a line that lets one host join as a machine, once and within 15 minutes"""
