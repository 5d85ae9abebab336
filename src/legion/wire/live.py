"""Shapes of live output: what the agents at work print, and what each is doing."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass
from legion.wire.tickets import UsageLine


@dataclass(kw_only=True)
class FollowOutput:
    """Asks for what was printed since. The answer comes when there is something new, or when the time is up."""

    cwd: str = ""
    """Any folder inside the project; empty: all projects."""
    ticket: int | None = None
    """Only runs of this ticket."""
    seen: dict[str, int] = field(default_factory=dict)
    """How far the caller has read, in bytes, by the number of the run. A run that is missing starts near its end."""


@dataclass(kw_only=True)
class RunningLine:
    """A run at work: of a ticket, or a turn of a standing agent."""

    run: int
    ticket: int | None
    agent: str
    """The standing agent's id; empty for a ticket's run."""
    name: str
    """The standing agent's name, or the role that a team's agent has; empty for the builder."""
    started_at: float
    activity: str = ""
    """The last tool that it used, and on what; empty where its program does not report that."""
    activity_at: float | None = None
    usage: UsageLine | None = None


@dataclass(kw_only=True)
class OutputPiece:
    run: int
    offset: int
    """Where the text starts. It is later than asked for where much was printed since."""
    next_offset: int
    text: str


@dataclass(kw_only=True)
class LiveOutput:
    schema: str = "legion.output/1"
    running: list[RunningLine]
    pieces: list[OutputPiece]
    """Only of runs that have printed something new."""
