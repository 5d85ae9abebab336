"""Shapes of requests and answers about notes: decisions, promises and open threads."""

from __future__ import annotations

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class AddNote:
    text: str
    kind: str = "decision"
    """decision, promise or thread."""
    cwd: str = ""
    """Any folder inside the project; a leader writes in its own."""
    ticket: int | None = None
    """The ticket that it is about."""
    request: str = ""
    """The same request again gets the first answer."""


@dataclass(kw_only=True)
class CloseNote:
    outcome: str = ""
    """How it ended."""
    cwd: str = ""
    request: str = ""


@dataclass(kw_only=True)
class NoteLine:
    id: int
    kind: str
    """decision, promise or thread."""
    text: str
    author: str
    """The name of the leader that wrote it, or `you`."""
    ticket: int | None
    created_at: float
    closed_at: float | None = None
    outcome: str = ""


@dataclass(kw_only=True)
class Notes:
    schema: str = "legion.notes/1"
    notes: list[NoteLine]
