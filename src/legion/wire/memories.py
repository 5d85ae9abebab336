"""Shapes of requests and answers about memories."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class Remember:
    cwd: str
    text: str
    files: list[str] = field(default_factory=list)
    """Only for tickets that declare such files."""
    labels: list[str] = field(default_factory=list)
    """Only for tickets with such a label."""
    ticket: int | None = None
    """The ticket that taught it."""


@dataclass(kw_only=True)
class MemoryLine:
    id: int
    text: str
    files: list[str]
    """Patterns: it is for tickets that declare such files."""
    labels: list[str]
    """It is for tickets with such a label."""
    ticket: int | None
    """The ticket that taught it."""
    created_at: float
    lesson: bool = False
    """It was won from a failure; `legion note lessons` shows more."""


@dataclass(kw_only=True)
class Memories:
    schema: str = "legion.memories/1"
    memories: list[MemoryLine]
    left_out: list[int] = field(default_factory=list)
    """Those for every ticket that no briefing has room for: newer ones take it."""


@dataclass(kw_only=True)
class Forget:
    cwd: str
