"""[standing] in the person's file: how many standing agents there may be, and which roles have extra rights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from legion.config.base.settings import texts, whole
from legion.domain.agents.agent import LEVELS, MOST, Rights
from legion.domain.agents.extra_rights import ALL_ROLES, ExtraRight, ExtraRights, opened
from legion.domain.leader.briefing import HANDOVER_LIMIT


def _role_fault(role: str) -> str | None:
    return None if role.strip() else "is no name of a role"


def _roles(help: str) -> Any:
    return texts(allowed=f'a list of roles, or ["{ALL_ROLES}"]', fault=_role_fault, help=help)


@dataclass(frozen=True, kw_only=True)
class StandingSettings:
    most: int = whole(MOST, 1, 1000, help="How many standing agents there may be at once, in all projects together.")
    levels: int = whole(LEVELS, 1, 20, help="How deep the tree of agents may be.")
    tell_anybody: tuple[str, ...] = _roles("Roles that may write to every standing agent, in any project.")
    interrupt_anybody: tuple[str, ...] = _roles("Roles that may interrupt every agent except those above them.")
    fire_anybody: tuple[str, ...] = _roles("Roles that may fire every agent except those above them.")
    choose_driver: tuple[str, ...] = _roles("Roles whose tickets may name one of your drivers, or `standing`.")

    approve_plans: tuple[str, ...] = _roles('Roles whose leaders may approve plans in your place: "leader", or none.')
    handover_tokens: int = whole(
        HANDOVER_LIMIT, 1000, 2_000_000, help="Tokens of a leader's conversation at which it continues in a fresh one."
    )

    @property
    def top(self) -> Rights:
        """The person's own seat: its limits bound all standing agents."""
        return Rights(headcount=self.most, depth=self.levels)

    @property
    def opened(self) -> ExtraRights:
        return opened(
            {
                ExtraRight.TELL: self.tell_anybody,
                ExtraRight.INTERRUPT: self.interrupt_anybody,
                ExtraRight.FIRE: self.fire_anybody,
                ExtraRight.DRIVER: self.choose_driver,
                ExtraRight.APPROVE: self.approve_plans,
            }
        )
