"""The kinds of jobs, and the claim on one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class JobKind(Enum):
    RUN = "run"
    """An agent works on a ticket."""
    CHECK = "check"
    """A ticket's own proofs, or a checkpoint."""
    REVIEW = "review"
    """A reviewer reads a ticket's change."""
    LAND = "land"
    """One project's merge queue."""
    BASELINE = "baseline"
    """The project's checks on the target itself."""
    SERVE = "serve"
    """One turn of a standing agent."""
    PLAN = "plan"
    """A planner works on a plan."""


TAKES_A_SLOT = (JobKind.RUN, JobKind.REVIEW, JobKind.SERVE, JobKind.PLAN)
"""The jobs of agents."""
READS = (JobKind.REVIEW, JobKind.PLAN)
"""Those of them that change nothing."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to run one job. A later generation of a job voids the claim of the earlier one."""

    id: int
    kind: JobKind
    subject: int
    """The ticket (run, check, review), the project (land, baseline) or the agent (serve)."""
    generation: int
    """Counts the starts of this job; 1 is the first."""
    machine: str
    until: float | None
    """When the claim lapses; None: it lasts until it is finished."""
    active: bool
    why: str = ""
    """Why it runs on that machine; empty where there was no choice."""
