"""Tickets at which a person sits: their agent works in a terminal, and a person talks with it there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from legion.domain.wheel import Wheel


class AttendMode(Enum):
    WHEEL = "wheel"
    """A person takes over the conversation of an agent that works alone, and gives it back."""
    PERSON = "person"
    """A person works with the agent from the start, and submits the change. Nothing is checked before."""


@dataclass(frozen=True, kw_only=True)
class Attendance(Wheel):
    ticket: int
    mode: AttendMode
    submitted: bool = False
    """The person submitted the change: the next end of a run, or its next start, judges it."""
    accepts: bool = False
    """What the program's description names is accepted without a person."""
