"""Reads which extra rights the person's current settings give to an agent."""

from __future__ import annotations

from legion.domain.agents import extra_rights
from legion.domain.agents.extra_rights import ExtraRight
from legion.jobs.board import Board
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents


def rights(context: Board, tx: ReadTransaction, agent: str) -> frozenset[ExtraRight]:
    """Empty for the person, who needs none."""
    opened = context.user.standing.opened
    if not any(opened.roles.values()):
        return frozenset()
    return extra_rights.rights_of(opened, agents.hirers(tx), agents.roles(tx), agent)
