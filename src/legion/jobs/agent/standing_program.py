"""The agent program of a standing agent: its driver, and why a driver cannot be one."""

from __future__ import annotations

from legion.domain.agents.agent import Agent
from legion.drivers import registry
from legion.drivers.profile import Capabilities, DriverProfile
from legion.jobs.agent.model_access import NoModelAccess


def profile(agent: Agent) -> DriverProfile:
    """Raises NoModelAccess where the description of its program is gone."""
    found = registry.find(agent.driver or registry.DEFAULT)
    if found is None:
        raise NoModelAccess(
            f"{agent.name} works with {agent.driver}, which is described no more: `legion driver add {agent.driver}`."
        )
    return found


def can_limit_tools(agent: Agent) -> bool:
    """Whether its program keeps to the tools that it is given."""
    found = registry.find(agent.driver or registry.DEFAULT)
    return found is not None and found.capabilities.reads_only


def missing_ability(can: Capabilities) -> str:
    """What a driver lacks to run a standing agent, whose conversation lasts from turn to turn; empty: nothing."""
    if not can.talks:
        return "it has no conversation"
    if not can.resumes:
        return "a later turn cannot continue its conversation"
    return "" if can.transcript else "its conversation does not show which messages arrived"
