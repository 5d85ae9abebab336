"""A ticket's plan: its agent may only read until a plan is approved.

    wanted -> proposed -> approved
       ^          |
       +----------+        rejected, with a reason

The right to approve is checked elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.agents.agent import Planning


@dataclass(frozen=True, kw_only=True)
class TicketPlan:
    ticket: int
    stage: Planning
    text: str
    """The text as last proposed."""
    decided_by: str = ""
    """The author of the last decision about it; empty before the first."""
    decided_at: float | None = None
    why: str = ""

    @property
    def only_reads(self) -> bool:
        return self.stage is not Planning.APPROVED
