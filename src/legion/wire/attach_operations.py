# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about terminals; operations.py explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


class AttachOperations(Table):
    """They are the person's alone: a terminal types as the person."""

    @operation("POST", "/v1/tickets/{id}/attach", waits=True)
    def attach(self, id: TicketId, wanted: wire.terminal.Attach, /) -> wire.terminal.OpenTerminal:
        """The terminal of a ticket's agent; one that works alone is interrupted for it"""

    @operation("POST", "/v1/tickets/{id}/give-back")
    def give_back(self, id: TicketId, /) -> wire.projects.Done:
        """Let a ticket's agent work alone again"""

    @operation("POST", "/v1/tickets/{id}/shell", waits=True)
    def shell(self, id: TicketId, wanted: wire.terminal.OpenShell, /) -> wire.terminal.OpenTerminal:
        """A shell in a ticket's worktree, inside its sandbox"""
