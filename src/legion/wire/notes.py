"""Notes: decisions, promises and threads, memories and lessons."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.lazy import dataclass
from legion.wire.table import Folder, MemoryId, NoteId, OpenTo, Table, operation
from legion.wire.ticket_fields import REQUIRED, described

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class _NoteScope:
    files: list[str] = described(list, metavar="GLOB", help="Only for tickets that declare such files.")
    """Patterns: it is for tickets that declare such files."""
    labels: list[str] = described(list, option="--label", metavar="NAME", help="Only for tickets with this label.")
    """It is for tickets with such a label."""
    pinned: bool = described(False, option="--pin", help="First in every briefing that it is for.")
    """It comes first in every briefing that it is for."""


@dataclass(kw_only=True)
class AddNote(_NoteScope):
    text: str = described(REQUIRED, argument="TEXT", help="What is to be known.")
    kind: str = "decision"
    """decision, promise, thread or fact; a memory is always one."""
    cwd: str = ""
    """Any folder inside the project; a leader writes in its own."""
    ticket: int | None = described(None, least=1, help="The ticket that it is about, or that taught it.")
    request: str = ""
    """The same request again gets the first answer."""


@dataclass(kw_only=True)
class CloseNote:
    """Also of a lesson that is accepted, and of a memory that is forgotten."""

    outcome: str = ""
    """How it ended."""
    cwd: str = ""
    """Any folder inside the project; a leader acts in its own."""
    request: str = ""


@dataclass(kw_only=True)
class NoteLine(_NoteScope):
    id: int
    kind: str = "memory"
    """decision, promise, thread, fact, memory or lesson."""
    text: str
    author: str = ""
    """The name of the leader that wrote it, or `you`; empty: Legion proposed it."""
    ticket: int | None = None
    """The ticket that it is about, or that taught it."""
    created_at: float
    closed_at: float | None = None
    outcome: str = ""
    lesson: bool = False
    """It was won from a failure; `legion note lessons` shows more."""
    proposed: bool = False
    """No briefing carries it until it is accepted."""
    accepted_by: str = ""
    """you, or the name of the leader."""
    carried: int = 0
    """Ended tickets whose briefing carried it."""
    attempts: float | None = None
    """Their attempts on average."""
    without: int = 0
    """Other ended tickets that it fits."""
    attempts_without: float | None = None
    """Their attempts on average."""


@dataclass(kw_only=True)
class Notes:
    schema: str = "legion.notes/1"
    notes: list[NoteLine]


@dataclass(kw_only=True)
class Memories:
    schema: str = "legion.memories/1"
    memories: list[NoteLine]
    left_out: list[int] = field(default_factory=list)
    """Those for every ticket that no briefing has room for."""


@dataclass(kw_only=True)
class Lessons:
    schema: str = "legion.lessons/1"
    lessons: list[NoteLine]


class NoteRows(Table):
    """Of agents, only leaders read and write notes and accept lessons."""

    @operation("GET", "/v1/notes", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def notes(self, cwd: Folder | None, all: bool = False) -> Notes:
        """Decisions that hold, promises to keep, open threads"""

    @operation(
        "POST", "/v1/notes", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="text kind cwd ticket request", created=True
    )
    def add_note(self, wanted: AddNote, /) -> Notes:
        """Record a decision, a promise or an open thread"""

    @operation("POST", "/v1/notes/{id}/close", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="outcome cwd request")
    def close_note(self, id: NoteId, wanted: CloseNote, /) -> Notes:
        """Close a note and record how it ended"""

    @operation("GET", "/v1/lessons", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def lessons(self, cwd: Folder | None) -> Lessons:
        """Proposed and accepted lessons, and whether attempts got fewer with them"""

    @operation("POST", "/v1/lessons/{id}/accept", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="cwd request")
    def accept_lesson(self, id: MemoryId, wanted: CloseNote, /) -> Lessons:
        """Let briefings carry a proposed lesson"""

    @operation("POST", "/v1/memories", open_to=OpenTo.ACTS, plain="cwd text files labels ticket pinned", created=True)
    def remember(self, wanted: AddNote, /) -> Memories:
        """Remember something that agents of this project should know; - reads it from stdin

        The briefing of a ticket carries the memories that fit its files and labels, up to 2,400 characters.
        """

    @operation("GET", "/v1/memories", open_to=OpenTo.LOOKS)
    def memories(self, cwd: Folder) -> Memories:
        """What agents of this project should know, and where each memory came from"""

    @operation("POST", "/v1/memories/{id}/forget", open_to=OpenTo.ACTS, plain="cwd", asks="Forget {what}?")
    def forget(self, id: MemoryId, wanted: CloseNote, /) -> wire.projects.Done:
        """Forget a memory; briefings no longer carry it"""
