"""Leaders among standing agents: the role, and what an agent that has it uses of its program."""

from __future__ import annotations

from legion.domain.agents.agent import READING, ROOT, Agent
from legion.domain.agents.extra_rights import plain

LEADER = "leader"
"""The role. Only the person can give it: one that another agent hired under this name is an agent like others."""


def is_leader(agent: Agent) -> bool:
    return plain(agent.role) == LEADER and (agent.hirer or agent.parent) == ROOT


def own_tools(tools: frozenset[str] | None) -> frozenset[str]:
    """A leader reads and delegates: of the program's tools it uses only those that read, whatever it may give."""
    return READING if tools is None else READING & tools
