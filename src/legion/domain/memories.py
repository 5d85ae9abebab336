"""Memories: what agents of a project should know, and which of them a ticket's briefing carries.

A memory with patterns or labels is for tickets that declare such files or have such a label; one with neither is for
all. The briefing carries a fixed number of characters of them, those that fit best first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from legion.domain.review.path_patterns import meet

LONGEST = 1000
"""Characters of one memory."""
SHARE = 2400
"""Characters of all memories in one briefing."""
LESSONS_SHARE = 900
"""Characters of lessons among them."""
MOST = 500
"""Memories of one project."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    id: int
    project: int
    text: str
    files: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    ticket: int | None = None
    """The ticket that taught it."""
    created_at: float = 0.0
    forgotten_at: float | None = None
    lesson: bool = False
    """It was won from a failure of `ticket`."""
    accepted_at: float | None = None
    """When a lesson was accepted; None: it is only proposed."""
    accepted_by: str = ""

    @property
    def proposed(self) -> bool:
        """No briefing carries it yet."""
        return self.lesson and self.accepted_at is None


def fitting(
    known: Iterable[Memory], files: Collection[str], labels: Collection[str], *, share: int = SHARE
) -> tuple[Memory, ...]:
    """Those for such a ticket, as many as the share holds: the more specific and the newer first.

    Lessons have a smaller share of their own within it. A proposed one is left out.
    """
    ranked = [(rank, one) for one in known if not one.proposed and (rank := _rank(one, files, labels))]
    ranked.sort(key=lambda pair: (-pair[0], -pair[1].id))
    chosen: list[Memory] = []
    lessons = min(share, LESSONS_SHARE)
    for _, one in ranked:
        size = len(one.text)
        if size <= (lessons if one.lesson else share):
            share -= size
            lessons = min(share, lessons - size if one.lesson else lessons)
            chosen.append(one)
    return tuple(sorted(chosen, key=lambda one: one.id))


def is_for(memory: Memory, files: Collection[str], labels: Collection[str]) -> bool:
    """Whether its files or labels meet those of a ticket."""
    return _rank(memory, files, labels) > 0


def format_memory(memory: Memory) -> str:
    """A memory as an agent reads it: a lesson names the ticket that taught it."""
    source = f" (lesson {memory.id}, from ticket {memory.ticket})" if memory.lesson else ""
    return f"{memory.text}{source}"


def _rank(memory: Memory, files: Collection[str], labels: Collection[str]) -> int:
    """0: it is not for this ticket."""
    if not memory.files and not memory.labels:
        return 1
    by_files = bool(memory.files) and meet(memory.files, files)
    by_labels = not set(memory.labels).isdisjoint(labels)
    return 3 if by_files else 2 if by_labels else 0
