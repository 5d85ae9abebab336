# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about terminals; operations.py explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


class AttachOperations(Table):
    """They are the person's alone: a terminal types as the person."""

    @operation("POST", "/v1/tickets/{id}/shell", waits=True)
    def shell(self, id: TicketId, wanted: wire.terminal.OpenShell, /) -> wire.terminal.OpenTerminal:
        """A shell in a ticket's worktree, inside its sandbox"""
