# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about terminals; `operations` explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import OpenTo, Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


class AttachOperations(Table):
    """They are the person's alone: a terminal types as the person."""

    @operation("POST", "/v1/tickets/{id}/attach", waits=True)
    def attach(self, id: TicketId, wanted: wire.terminal.Attach, /) -> wire.terminal.OpenTerminal:
        """The terminal of a ticket's agent; one that works alone is interrupted for it"""

    @operation("POST", "/v1/tickets/{id}/give-back", open_to=OpenTo.ACTS)
    def give_back(self, id: TicketId, /) -> wire.projects.Done:
        """Let a ticket's agent work alone again"""

    @operation("POST", "/v1/agents/attach", waits=True)
    def attach_agent(self, wanted: wire.terminal.AttachAgent, /) -> wire.terminal.OpenTerminal:
        """The conversation of a standing agent in a terminal; a turn is interrupted for it"""

    @operation("POST", "/v1/agents/give-back", open_to=OpenTo.ACTS, plain="id")
    def give_back_agent(self, wanted: wire.terminal.GiveBackAgent, /) -> wire.projects.Done:
        """Let a standing agent work alone again"""

    @operation("POST", "/v1/tickets/by-hand", open_to=OpenTo.BROWSER, created=True)
    def new_by_hand(self, wanted: wire.terminal.NewByHand, /) -> wire.dispatch.Dispatched:
        """A ticket that a person works on together with its agent"""

    @operation("POST", "/v1/tickets/{id}/submit", open_to=OpenTo.BROWSER)
    def submit_ticket(self, id: TicketId, /) -> wire.tickets.Acted:
        """Submit the change of such a ticket"""

    @operation("POST", "/v1/tickets/{id}/checkout", open_to=OpenTo.BROWSER, waits=True)
    def checkout(self, id: TicketId, wanted: wire.terminal.OfferWork, /) -> wire.terminal.OfferedBranch:
        """A ticket's work as a new branch in the person's repository"""

    @operation("POST", "/v1/tickets/{id}/push", open_to=OpenTo.BROWSER, waits=True)
    def push(self, id: TicketId, wanted: wire.terminal.OfferWork, /) -> wire.terminal.OfferedBranch:
        """Push a ticket's work to a remote of the person's repository, as a new branch"""

    @operation("POST", "/v1/tickets/{id}/shell", waits=True)
    def shell(self, id: TicketId, wanted: wire.terminal.OpenShell, /) -> wire.terminal.OpenTerminal:
        """A shell in a ticket's worktree, inside its sandbox"""
