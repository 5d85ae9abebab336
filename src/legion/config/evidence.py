"""What the person's own file says about changes that need more than green checks.

Rules and texts only; whoever judges a change reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from legion.config.settings import DAY, choice, number, texts
from legion.domain.paths import glob_fault


class Guard(Enum):
    ASK = "ask"
    """A change of protected files waits for the person."""
    OFF = "off"
    """It lands like any other."""


@dataclass(frozen=True, kw_only=True)
class Protection:
    mode: Guard = field(
        default=Guard.ASK,
        metadata=choice(Guard, help='What stops a change of protected files or weakened tests. "off": nothing does.'),
    )
    allow: tuple[str, ...] = field(
        default=(),
        metadata=texts(
            allowed="a list of patterns for paths from the root of the repository",
            fault=glob_fault,
            help="Paths that every ticket of every project may touch, as if it declared them.",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Questions:
    answer_within: float = field(
        default=86_400.0,
        metadata=number(
            1, 30 * DAY, unit="seconds", help="How long a question about a change waits before it counts as a no."
        ),
    )
