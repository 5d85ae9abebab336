# mypy: disable-error-code="empty-body"
"""The rows of the table of operations for a person's controls: gate, edit, queue, try, numbers, freeze."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Folder, Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


class ControlOperations(Table):
    """All of them are the person's alone."""

    @operation("POST", "/v1/tickets/{id}/land")
    def land(self, id: TicketId, /) -> wire.tickets.Acted:
        """Land a change that waits for the person"""

    @operation("POST", "/v1/tickets/{id}/edit")
    def edit(self, id: TicketId, wanted: wire.controls.EditTicket, /) -> wire.tickets.Acted:
        """Change a ticket before it starts, or before it is tried again"""

    @operation("POST", "/v1/tickets/{id}/place")
    def move_in_queue(self, id: TicketId, wanted: wire.controls.MoveInQueue, /) -> wire.tickets.Acted:
        """Move a change in the merge queue"""

    @operation("GET", "/v1/queue")
    def merge_queue(self, cwd: Folder) -> wire.controls.MergeQueuePage:
        """The merge queue, in order"""

    @operation("POST", "/v1/try", waits=True)
    def try_changes(self, wanted: wire.controls.TryChanges, /) -> wire.controls.TriedChanges:
        """Open a tree with changes that have not landed"""

    @operation("GET", "/v1/project/numbers")
    def numbers(self, cwd: Folder) -> wire.controls.Numbers:
        """How many agents work at once, and how often a ticket is tried"""

    @operation("POST", "/v1/project/numbers")
    def set_numbers(self, wanted: wire.controls.SetNumbers, /) -> wire.controls.Numbers:
        """Set these numbers at once, without a commit"""

    @operation("POST", "/v1/epics/gate")
    def epic_gate(self, wanted: wire.controls.EpicGate, /) -> wire.plans.EpicPage:
        """Set whether changes of an epic wait for the person"""

    @operation("POST", "/v1/mail/find")
    def find_mail(self, wanted: wire.mail.FindMail, /) -> wire.mail.Mail:
        """Messages with a text in them, or those of one conversation"""

    @operation("POST", "/v1/mail/archive")
    def archive_mail(self, wanted: wire.mail.ArchiveMail, /) -> wire.projects.Done:
        """Put messages to the person away"""

    @operation("POST", "/v1/providers/use")
    def use_account(self, wanted: wire.providers.UseAccount, /) -> wire.projects.Done:
        """Ask this login first, of several at one provider"""

    @operation("POST", "/v1/freeze")
    def freeze(self) -> wire.tickets.Acted:
        """Stop every agent of every project; nothing starts until thaw"""

    @operation("POST", "/v1/thaw")
    def thaw(self) -> wire.tickets.Acted:
        """Resume what a freeze stopped"""
