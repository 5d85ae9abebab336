"""Shapes of requests and answers about lessons: memories won from failures."""

from __future__ import annotations

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class AcceptLesson:
    cwd: str = ""
    """Any folder inside the project; a leader accepts in its own."""
    request: str = ""


@dataclass(kw_only=True)
class LessonLine:
    id: int
    """Also its number among the memories: `legion note forget N` ends it."""
    text: str
    ticket: int | None
    """The ticket that taught it."""
    files: list[str]
    labels: list[str]
    proposed: bool
    """No briefing carries it until it is accepted."""
    accepted_by: str
    """you, or the name of the leader."""
    created_at: float
    carried: int
    """Ended tickets whose briefing carried it."""
    attempts: float | None
    """Their attempts on average."""
    without: int
    """Other ended tickets that it fits."""
    attempts_without: float | None


@dataclass(kw_only=True)
class Lessons:
    schema: str = "legion.lessons/1"
    lessons: list[LessonLine]
