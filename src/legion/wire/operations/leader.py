# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about agents that lead: conversation, delegation, routines, lessons, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Folder, MemoryId, NoteId, OpenTo, RoutineId, Table, operation

if TYPE_CHECKING:
    from legion import wire


class LeaderOperations(Table):
    """Rows of the table."""

    @operation("POST", "/v1/leader/conversation", open_to=OpenTo.LOOKS, plain="cwd name last")
    def conversation(self, wanted: wire.leader.ReadConversation, /) -> wire.leader.Conversation:
        """The leader of a project, and its messages with the person, which are marked as read"""

    @operation("POST", "/v1/agents/delegate", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="id on")
    def delegate(self, wanted: wire.agents.SetDelegation, /) -> wire.projects.Done:
        """Set whether an agent below the caller only leads, without tools of its program"""

    # Routines: tickets that start by time or event, with the person's own rights.

    @operation("POST", "/v1/routines", open_to=OpenTo.BROWSER, created=True)
    def add_routine(self, wanted: wire.routines.AddRoutine, /) -> wire.routines.Routines:
        """Dispatch a ticket or a template by time or by event from now on"""

    @operation("GET", "/v1/routines", open_to=OpenTo.LOOKS)
    def routines(self, cwd: Folder) -> wire.routines.Routines:
        """The routines of a project, and their last starts"""

    @operation("POST", "/v1/routines/{id}/remove", open_to=OpenTo.BROWSER)
    def remove_routine(self, id: RoutineId, wanted: wire.routines.OfRoutine, /) -> wire.projects.Done:
        """End a routine; its tickets stay"""

    @operation("POST", "/v1/routines/{id}/run", open_to=OpenTo.BROWSER)
    def run_routine(self, id: RoutineId, wanted: wire.routines.OfRoutine, /) -> wire.routines.Routines:
        """Start a routine now"""

    # Lessons: memories won from failures. Of agents, only a leader accepts them.

    @operation("GET", "/v1/lessons", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def lessons(self, cwd: Folder | None) -> wire.lessons.Lessons:
        """Proposed and accepted lessons, and whether attempts got fewer with them"""

    @operation("POST", "/v1/lessons/{id}/accept", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="cwd request")
    def accept_lesson(self, id: MemoryId, wanted: wire.lessons.AcceptLesson, /) -> wire.lessons.Lessons:
        """Let briefings carry a proposed lesson"""

    # Notes: decisions, promises and open threads. Of agents, only leaders read and write them.

    @operation("GET", "/v1/notes", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def notes(self, cwd: Folder | None, all: bool = False) -> wire.notes.Notes:
        """Decisions that hold, promises to keep, open threads"""

    @operation(
        "POST", "/v1/notes", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="text kind cwd ticket request", created=True
    )
    def add_note(self, wanted: wire.notes.AddNote, /) -> wire.notes.Notes:
        """Record a decision, a promise or an open thread"""

    @operation("POST", "/v1/notes/{id}/close", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="outcome cwd request")
    def close_note(self, id: NoteId, wanted: wire.notes.CloseNote, /) -> wire.notes.Notes:
        """Close a note and record how it ended"""
