"""Who calls Legion: the person, a standing agent, or the agent of a ticket. Only a token tells."""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.agents.agent import ROOT


@dataclass(frozen=True, kw_only=True)
class Caller:
    id: str
    """`root` for the person, a standing agent's id, or ticket-12 for the agent of a ticket."""
    ticket: int | None = None
    run: int | None = None
    """The run that the token was issued for; None for the person."""

    @property
    def is_person(self) -> bool:
        return self.id == ROOT


PERSON = Caller(id=ROOT)
