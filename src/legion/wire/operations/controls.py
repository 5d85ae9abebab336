# mypy: disable-error-code="empty-body"
"""The rows of the table of operations for a person's controls: gate, edit, queue, try, numbers, freeze."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Folder, OpenTo, Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


class ControlOperations(Table):
    """All of them are the person's alone."""

    @operation("POST", "/v1/tickets/{id}/land", open_to=OpenTo.ACTS)
    def land(self, id: TicketId, /) -> wire.tickets.Acted:
        """Land a change that waits for the person"""

    @operation("POST", "/v1/tickets/{id}/edit", open_to=OpenTo.BROWSER)
    def edit(self, id: TicketId, wanted: wire.controls.EditTicket, /) -> wire.tickets.Acted:
        """Change a ticket before it starts, or before it is tried again"""

    @operation("POST", "/v1/tickets/{id}/place", open_to=OpenTo.ACTS, plain="to")
    def move_in_queue(self, id: TicketId, wanted: wire.controls.MoveInQueue, /) -> wire.tickets.Acted:
        """Move a change in the merge queue"""

    @operation("GET", "/v1/queue", open_to=OpenTo.LOOKS)
    def merge_queue(self, cwd: Folder) -> wire.controls.MergeQueuePage:
        """The merge queue, in order"""

    @operation("POST", "/v1/try", open_to=OpenTo.BROWSER, waits=True)
    def try_changes(self, wanted: wire.controls.TryChanges, /) -> wire.controls.TriedChanges:
        """Open a tree with changes that have not landed"""

    @operation("GET", "/v1/project/numbers", open_to=OpenTo.LOOKS)
    def numbers(self, cwd: Folder) -> wire.controls.Numbers:
        """How many agents work at once, and how often a ticket is tried"""

    @operation("POST", "/v1/project/numbers", open_to=OpenTo.BROWSER)
    def set_numbers(self, wanted: wire.controls.SetNumbers, /) -> wire.controls.Numbers:
        """Set these numbers at once, without a commit"""

    @operation("POST", "/v1/epics/gate", open_to=OpenTo.BROWSER)
    def epic_gate(self, wanted: wire.controls.EpicGate, /) -> wire.plans.EpicPage:
        """Set whether changes of an epic wait for the person"""

    @operation("POST", "/v1/mail/find", open_to=OpenTo.LOOKS, plain="text thread")
    def find_mail(self, wanted: wire.mail.FindMail, /) -> wire.mail.Mail:
        """Messages with a text in them, or those of one conversation"""

    @operation("POST", "/v1/mail/archive", open_to=OpenTo.ACTS, plain="numbers")
    def archive_mail(self, wanted: wire.mail.ArchiveMail, /) -> wire.projects.Done:
        """Put messages to the person away"""

    @operation("POST", "/v1/providers/use", open_to=OpenTo.BROWSER)
    def use_account(self, wanted: wire.providers.UseAccount, /) -> wire.projects.Done:
        """Ask this login first, of several at one provider"""

    @operation("POST", "/v1/freeze", open_to=OpenTo.ACTS)
    def freeze(self) -> wire.tickets.Acted:
        """Stop every agent of every project; nothing starts until thaw"""

    @operation("POST", "/v1/thaw", open_to=OpenTo.ACTS)
    def thaw(self) -> wire.tickets.Acted:
        """Resume what a freeze stopped"""
