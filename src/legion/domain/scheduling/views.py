"""Projects, standing agents and plans, as far as decisions depend on them."""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.landing.conflicts import Overlap


@dataclass(frozen=True, kw_only=True)
class ProjectView:
    id: int
    parallel: int
    """How many agents may work on tickets at once."""
    paused: bool
    trusted: bool
    """The person has trusted the commands in the target's legion.toml."""
    baseline_known: bool
    """The target's own checks have receipts, or there are none to run."""
    baseline_red: bool
    upstream_pending: bool
    """The person committed something that is not in the target and was not refused yet."""
    overlap: Overlap = Overlap.OFF
    """What follows if tickets declare the same files."""
    landing_open: bool = False
    """The intent to move the target is stored, and its end is not."""
    readable: bool = True
    """Its stored legion.toml can be parsed. Without that none of its jobs can run."""


@dataclass(frozen=True, kw_only=True)
class AgentView:
    """A standing agent, or a fired one whose last turn has not ended."""

    number: int
    project: int
    wanted: bool
    """It has mail, or must resume an interrupted turn."""
    held_until: float | None = None
    in_a_turn: bool = False
    """A turn has started and its end is not recorded."""
    waiting_since: float = 0.0
    """When its oldest waiting message was sent; 0 for an interrupted turn."""


@dataclass(frozen=True, kw_only=True)
class PlanView:
    """A plan that needs its planner, or whose planner's run has not ended."""

    number: int
    project: int
    wanted: bool
    held_until: float | None = None
    in_a_run: bool = False
    """A run has started and its end is not recorded."""
    waiting_since: float = 0.0
