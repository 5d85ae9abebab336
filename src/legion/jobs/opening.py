"""What the person's settings open to one agent beyond what agents usually may, as they are at this moment."""

from __future__ import annotations

from legion.domain import opening as rules
from legion.domain.opening import Right
from legion.jobs.world import World
from legion.store import agents
from legion.store.database import ReadTransaction


def rights(world: World, tx: ReadTransaction, agent: str) -> frozenset[Right]:
    """Nothing for the person, who needs none."""
    opened = world.user.standing.opened
    if not any(opened.roles.values()):
        return frozenset()
    return rules.rights_of(opened, agents.hirers(tx), agents.roles(tx), agent)
