"""A claim: the right to run one job. A later generation of a job voids the claim of the earlier one."""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.scheduling.decide import JobKind


@dataclass(frozen=True, kw_only=True)
class Claim:
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
