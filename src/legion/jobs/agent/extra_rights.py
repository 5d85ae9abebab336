"""What the person's settings open to one agent beyond what agents usually may, as they are at this moment."""

from __future__ import annotations

from legion.domain.agents import extra_rights as rules
from legion.domain.agents.extra_rights import ExtraRight
from legion.jobs.context import Context
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents


def rights(context: Context, tx: ReadTransaction, agent: str) -> frozenset[ExtraRight]:
    """Nothing for the person, who needs none."""
    opened = context.user.standing.opened
    if not any(opened.roles.values()):
        return frozenset()
    return rules.rights_of(opened, agents.hirers(tx), agents.roles(tx), agent)
