"""A ticket's plan: its agent may only read until somebody who may decide about it has approved one.

    wanted -> proposed -> approved
       ^          |
       +----------+        rejected, with a reason

Who may decide is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.agents.agent import Planning


@dataclass(frozen=True, kw_only=True)
class TicketPlan:
    ticket: int
    stage: Planning
    text: str
    """As it was proposed last."""
    decided_by: str = ""
    """Whose word about it was the last one; empty while nobody has said any."""
    decided_at: float | None = None
    why: str = ""

    @property
    def only_reads(self) -> bool:
        return self.stage is not Planning.APPROVED
