"""Rights that the person grants to agents by role, beyond the usual ones. They only narrow downward.

A role is a word chosen by the hiring agent. So an agent has a right only if its hirer has it too, up to the person: no
agent can hire one that may do more than itself, and adoption widens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from legion.domain.agents.agent import ROOT, above, may_command, may_tell

ALL_ROLES = "*"
"""In place of a role: all of them."""


class ExtraRight(Enum):
    TELL = "tell"
    """Write to every standing agent."""
    INTERRUPT = "interrupt"
    """Every agent except those above."""
    FIRE = "fire"
    """Every agent except those above."""
    DRIVER = "driver"
    """Choose the driver of the tickets that it dispatches."""
    APPROVE = "approve"
    """As a leader: approve plans of goals."""


@dataclass(frozen=True, kw_only=True)
class ExtraRights:
    """The roles to which each right is granted."""

    roles: Mapping[ExtraRight, frozenset[str]] = field(default_factory=dict)

    def to(self, right: ExtraRight, role: str) -> bool:
        named = self.roles.get(right, frozenset())
        return ALL_ROLES in named or plain(role) in named


def plain(role: str) -> str:
    """Roles are the same however they are spaced and capitalised."""
    return " ".join(role.lower().split())


def opened(roles: Mapping[ExtraRight, Iterable[str]]) -> ExtraRights:
    return ExtraRights(roles={right: frozenset(map(plain, named)) for right, named in roles.items()})


def rights_of(
    opened: ExtraRights, hirers: Mapping[str, str], roles: Mapping[str, str], agent: str
) -> frozenset[ExtraRight]:
    """`hirers` and `roles` cover all agents that were ever hired."""
    line = [one for one in (agent, *above(hirers, agent)) if one != ROOT]
    return frozenset(right for right in ExtraRight if line and all(opened.to(right, roles[one]) for one in line))


def tells(parents: Mapping[str, str], caller: str, target: str, rights: frozenset[ExtraRight]) -> bool:
    return may_tell(parents, caller, target) or (ExtraRight.TELL in rights and caller != target)


def commands(
    parents: Mapping[str, str], caller: str, target: str, rights: frozenset[ExtraRight], right: ExtraRight
) -> bool:
    """Interrupt and fire: agents below; with the right, all except itself and those above."""
    if may_command(parents, caller, target):
        return True
    return right in rights and target != caller and target not in above(parents, caller)
