"""Notes: sentences that outlive a conversation. Their kind says who reads them.

Decisions, promises, threads and facts are for leaders: a decision or fact stays open while it holds, a promise until it
is kept, a thread until it is settled. Closing records how it ended. Memories and lessons are for the agents of tickets:
one with patterns or labels is for tickets that declare such files or have such a label, one with neither is for all. A
lesson was won from a failure, and counts once it is accepted.

A briefing carries a fixed number of characters of them: pinned ones first, then those that fit the ticket best.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from legion.domain.review.path_patterns import meet

LONGEST = 300
"""Characters of a note for leaders."""
LONGEST_FOR_AGENTS = 1000
MOST = 200
"""Open notes for leaders in one project: a briefing carries those that fit, and names the others."""
MOST_FOR_AGENTS = 500
SHARE = 2400
"""Characters of notes in the briefing of a ticket."""
LESSONS_SHARE = 900
"""Characters of lessons among them."""
_WORD = re.compile(r"[^\W\d_]\w{3,}")
_MOST_WORDS = 2


class NoteKind(Enum):
    DECISION = "decision"
    """What was decided, and holds until it is closed."""
    PROMISE = "promise"
    """What the leader owes to the person or to an agent."""
    THREAD = "thread"
    """What was started and has no end yet."""
    FACT = "fact"
    """What the person or an agent reported to the leader, with its source."""
    MEMORY = "memory"
    """What agents of the project should know."""
    LESSON = "lesson"
    """What was won from a failure of `ticket`."""


FOR_LEADERS = (NoteKind.PROMISE, NoteKind.THREAD, NoteKind.DECISION, NoteKind.FACT)
"""In the order in which a leader reads them."""
FOR_AGENTS = (NoteKind.MEMORY, NoteKind.LESSON)


@dataclass(frozen=True, kw_only=True)
class Note:
    id: int
    project: int
    kind: NoteKind
    text: str
    author: str = ""
    """`root` for the person, a standing agent's id; empty: Legion proposed it by rule."""
    ticket: int | None = None
    """The ticket that it is about, or that taught it."""
    created_at: float = 0.0
    closed_at: float | None = None
    closed_by: str = ""
    outcome: str = ""
    """How it ended, in the words of the closer."""
    files: tuple[str, ...] = ()
    """Patterns: it is for tickets that declare such files."""
    labels: tuple[str, ...] = ()
    pinned: bool = False
    """It comes first in every briefing that it is for."""
    accepted_at: float | None = None
    """When a lesson was accepted; None: it is only proposed."""
    accepted_by: str = ""

    @property
    def open(self) -> bool:
        return self.closed_at is None

    @property
    def is_lesson(self) -> bool:
        return self.kind is NoteKind.LESSON

    @property
    def proposed(self) -> bool:
        """No briefing carries it yet."""
        return self.is_lesson and self.accepted_at is None


def in_order(notes: Iterable[Note]) -> list[Note]:
    """By kind; the oldest of each kind first."""
    return sorted(notes, key=lambda note: (FOR_LEADERS.index(note.kind), note.id))


def format_note(note: Note) -> str:
    """A note as a leader reads it."""
    about = f" (ticket {note.ticket})" if note.ticket is not None else ""
    return f"{note.id} {note.kind.value}{about}: {note.text}"


def format_for_agent(note: Note) -> str:
    """A note as the agent of a ticket reads it: a lesson names the ticket that taught it."""
    source = f" (lesson {note.id}, from ticket {note.ticket})" if note.is_lesson else ""
    return f"{note.text}{source}"


def fitting(
    known: Iterable[Note], files: Collection[str], labels: Collection[str], text: str = "", *, share: int = SHARE
) -> tuple[Note, ...]:
    """Those for such a ticket, as many as the share holds: pinned ones first, then by files, labels, words and age.

    Lessons have a smaller share of their own within it. A proposed one is left out.
    """
    words = _terms(text)
    ranked = [
        ((one.pinned, rank, min(len(_terms(one.text) & words), _MOST_WORDS), one.id), one)
        for one in known
        if not one.proposed and (rank := _rank(one, files, labels))
    ]
    chosen: list[Note] = []
    lessons = min(share, LESSONS_SHARE)
    for _, one in sorted(ranked, key=lambda pair: pair[0], reverse=True):
        size = len(one.text)
        if size <= (lessons if one.is_lesson else share):
            share -= size
            lessons = min(share, lessons - size if one.is_lesson else lessons)
            chosen.append(one)
    return tuple(sorted(chosen, key=lambda one: one.id))


def is_for(note: Note, files: Collection[str], labels: Collection[str]) -> bool:
    """Whether its files or labels meet those of a ticket."""
    return _rank(note, files, labels) > 0


def _rank(note: Note, files: Collection[str], labels: Collection[str]) -> int:
    """0: it is not for this ticket."""
    if not note.files and not note.labels:
        return 1
    by_files = bool(note.files) and meet(note.files, files)
    by_labels = not set(note.labels).isdisjoint(labels)
    return 3 if by_files else 2 if by_labels else 0


def _terms(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
