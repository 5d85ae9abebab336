"""Fields that shapes of several subjects share. None of these classes is sent itself."""

from __future__ import annotations

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class DefinitionLine:
    """A role, a team or a template in a list."""

    name: str
    about: str
    origin: str
    """`shipped`, `yours` or `repository`."""
    file: str
    fault: str = ""
    """What is wrong with its file."""


@dataclass(kw_only=True)
class Waves:
    waves: list[list[int]]
    critical_path: list[int]


@dataclass(kw_only=True)
class TextPiece:
    offset: int
    """Where the text starts. It is later than asked for where much was printed since."""
    next_offset: int
    text: str
