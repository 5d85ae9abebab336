"""Notes: decisions, promises and open threads of a leader, kept as rows so that no conversation has to hold them.

A decision stays open while it holds, a promise until it is kept, a thread until it is settled. Closing records how it
ended. A leader is briefed with the open ones, so there is a limit to how many there are and how long each is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

LONGEST = 300
"""Characters of one note."""
MOST = 60
"""Open notes of one project."""


class NoteKind(Enum):
    DECISION = "decision"
    """What was decided, and holds until it is closed."""
    PROMISE = "promise"
    """What the leader owes to the person or to an agent."""
    THREAD = "thread"
    """What was started and has no end yet."""


@dataclass(frozen=True, kw_only=True)
class Note:
    id: int
    project: int
    kind: NoteKind
    text: str
    author: str
    """`root` for the person, or a standing agent's id."""
    ticket: int | None = None
    """The ticket that it is about."""
    created_at: float = 0.0
    closed_at: float | None = None
    closed_by: str = ""
    outcome: str = ""
    """How it ended, in the words of the closer."""

    @property
    def open(self) -> bool:
        return self.closed_at is None


def in_order(notes: Iterable[Note]) -> list[Note]:
    """Promises first, then threads, then decisions; the oldest of each kind first."""
    order = (NoteKind.PROMISE, NoteKind.THREAD, NoteKind.DECISION)
    return sorted(notes, key=lambda note: (order.index(note.kind), note.id))


def format_note(note: Note) -> str:
    """A note as a leader reads it."""
    about = f" (ticket {note.ticket})" if note.ticket is not None else ""
    return f"{note.id} {note.kind.value}{about}: {note.text}"
