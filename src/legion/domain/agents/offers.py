"""Rules for the operations on a standing agent: which the person may call now.

The names are those of the operations. The service obeys them, and the keys of all clients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from legion.domain.agents.agent import Agent


@dataclass(frozen=True, kw_only=True)
class AgentFacts:
    """What the rules need besides the agent."""

    in_turn: bool = False
    only_reads: bool = False
    """Until a plan is approved: its own, or that of the ticket which it holds."""
    opens: bool = False
    """Its program has a form for a terminal."""
    limits_tools: bool = False
    """Its program keeps to the tools that it is given."""


OFFERS: dict[str, Callable[[Agent, AgentFacts], bool]] = {
    "tell_agent": lambda agent, facts: True,
    "interrupt_agent": lambda agent, facts: facts.in_turn,
    "attach_agent": lambda agent, facts: facts.opens,
    "decide_plan": lambda agent, facts: facts.only_reads,
    "delegate": lambda agent, facts: agent.delegates or facts.limits_tools,
    "fire": lambda agent, facts: True,
}
"""For an agent that was not fired. `interrupt_agent` without words, `delegate` to the other of its two values."""


def may(name: str, agent: Agent, facts: AgentFacts) -> bool:
    return agent.fired_at is None and OFFERS[name](agent, facts)


def offered(agent: Agent, facts: AgentFacts) -> list[str]:
    return [name for name in OFFERS if may(name, agent, facts)]
