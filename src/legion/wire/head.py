"""Shapes of the answers of `legion machine head`, which no daemon gives."""

from __future__ import annotations

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class HeadState:
    """What `legion machine head backup`, `restore` or `move` copied."""

    schema: str = "legion.head/1"
    rows: int
    projects: list[str]
    place: str
    """The file that was written or read, or the database that was filled, without its password."""
    bytes: int = 0
    """Of the file."""
    kept: str = ""
    """The path of the old database."""
