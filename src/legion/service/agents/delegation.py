"""Set whether a standing agent only leads: it uses Legion's tools alone, from its next turn on."""

from __future__ import annotations

from legion.domain.agents.agent import ROOT, Agent, is_leader, may, may_command
from legion.domain.errors import BadInput, NotAllowed, NotFound
from legion.jobs.agent import plan_approval, preparation
from legion.jobs.board import Board
from legion.service.agents.claim import READ_ONLY
from legion.service.agents.listing import AgentLines
from legion.store.staff import agents
from legion.wire.agents import SetDelegation
from legion.wire.projects import Done


def delegate(context: Board, caller: str, wanted: SetDelegation) -> Done:
    """For an agent below the caller, as at its hire. The same again changes nothing."""
    with context.store.write() as tx:
        agent = agents.find(tx, wanted.id, by=caller)
        if agent.fired_at is not None:
            raise NotFound(f"{agent.name} was fired already.")
        if not may_command(agents.parents(tx), caller, agent.id):
            raise NotAllowed(f"You may not change {agent.name}: only agents below you.")
        if caller != ROOT and plan_approval.reader(tx, agents.get(tx, caller)).only_reads:
            raise NotAllowed(READ_ONLY)
        if wanted.on and not may("delegate", agent, AgentLines(context, tx).facts(agent)):
            title = preparation.profile(agent).title
            raise BadInput(f"{title} cannot be limited to some of its tools, so {agent.name} cannot only lead.")
        if agent.delegates != wanted.on:
            agents.delegate(tx, agent, wanted.on, by=caller)
    return Done(message=_sentence(agent, wanted.on))


def _sentence(agent: Agent, on: bool) -> str:
    if on:
        return f"{agent.name} only leads from its next turn on: it uses Legion's tools alone."
    tools = "reads files again" if is_leader(agent) else "uses the tools of its program again"
    return f"{agent.name} {tools} from its next turn on."
